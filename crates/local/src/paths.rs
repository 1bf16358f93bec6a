//! Where everything lies: the layout of a cluster's directory, and the user's own directories.
//!
//! What must lie outside the directory (control groups) is named by [`Directory::name`], a hash of the directory's
//! path, so that it can be found and removed when every file of the cluster is lost.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{
    Component,
    error::{Error, Result},
};

/// A cluster's directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// The directory at `path`, which need not exist, without links and relative parts.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).map_err(Error::io("resolving", path))?;
        if let Ok(real) = fs::canonicalize(&absolute) {
            return Ok(Self(real));
        }
        match (absolute.parent(), absolute.file_name()) {
            (Some(parent), Some(name)) => Ok(Self(Self::at(parent)?.0.join(name))),
            _ => Ok(Self(absolute)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What this cluster is called outside its directory. The keeper computes the same.
    pub(crate) fn name(&self) -> String {
        format!("linchpin-{}", &hexadecimal(&Sha256::digest(self.0.as_os_str().as_encoded_bytes()))[..8])
    }

    /// The file that makes a directory a cluster's; the keeper knows it too.
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join("cluster.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    pub(crate) fn kubeconfig(&self, whose: &str) -> PathBuf {
        self.0.join(if whose == "admin" { "kubeconfig".to_owned() } else { format!("{whose}.kubeconfig") })
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub(crate) fn log(&self, component: Component) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.0.join("certificates")
    }

    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.certificates().join(format!("{name}.crt"))
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.certificates().join(format!("{name}.key"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.0.join("audit.log")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What belongs to the real node.
    pub(crate) fn node(&self) -> PathBuf {
        self.0.join("node")
    }
}

/// Where programs that take minutes to build are kept between runs: `$LINCHPIN_CACHE`, or `linchpin` below the
/// user's cache directory.
pub fn cache_directory() -> Result<PathBuf> {
    match env::var_os("LINCHPIN_CACHE") {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => user_directory("XDG_CACHE_HOME", ".cache", "the cache of built programs"),
    }
}

/// Where `linchpin local` keeps its cluster unless configured otherwise: `linchpin/local` below the user's state
/// directory.
pub fn default_directory() -> Result<PathBuf> {
    Ok(user_directory("XDG_STATE_HOME", ".local/state", "the local cluster")?.join("local"))
}

fn user_directory(variable: &'static str, below_home: &str, what: &'static str) -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set(variable)
        .or_else(|| set("HOME").map(|home| home.join(below_home)))
        .map(|base| base.join("linchpin"))
        .ok_or(Error::NoHome { what, variable })
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes a file so that a reader sees the old content or the new, never a part, also with other writers.
pub(crate) fn write_whole(path: &Path, content: &str) -> Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut partial = tempfile::NamedTempFile::new_in(folder).map_err(Error::io("writing", path))?;
    partial.write_all(content.as_bytes()).map_err(Error::io("writing", path))?;
    partial.persist(path).map(drop).map_err(|refused| Error::io("writing", path)(refused.error))
}

pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content).map_err(Error::io("writing", path))
}

pub(crate) fn create(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::io("creating", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_called_the_same_whether_or_not_its_directory_exists() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("missing").join("cluster");
        let before = Directory::at(&path).unwrap().name();
        fs::create_dir_all(&path).unwrap();
        assert_eq!(before, Directory::at(&path).unwrap().name());
    }

    #[test]
    fn the_keeper_would_find_this_name_too() {
        // sha256("/somewhere") begins with these four bytes; the keeper's clean.go takes the same ones.
        let digest = hexadecimal(&Sha256::digest(b"/somewhere"));
        assert_eq!(Directory(PathBuf::from("/somewhere")).name(), format!("linchpin-{}", &digest[..8]));
    }
}
