//! Names in archives, and which of them are asked for.

use linchpin_words::{limits, text::quote};

use crate::Problem;

/// Which manifests of an archive are wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestSelection {
    /// Directories or files, normalised; the empty path is the whole archive.
    paths: Vec<String>,
    /// How many leading directories are taken off every name.
    strip: usize,
}

/// A path that cannot be one in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectionError {
    /// Which of the paths.
    pub index: usize,
    /// What is wrong with it.
    pub message: String,
}

impl Default for ManifestSelection {
    fn default() -> Self {
        Self { paths: vec![String::new()], strip: 0 }
    }
}

impl ManifestSelection {
    /// The wanted paths after `strip` leading directories were taken off; no paths mean everything.
    pub fn new(paths: &[String], strip: usize) -> Result<Self, SelectionError> {
        let mut normalised = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let path = checked(path.as_bytes())
                .map_err(|problem| SelectionError { index, message: problem.message })?;
            normalised.push(path);
        }
        if normalised.is_empty() {
            normalised.push(String::new());
        }
        normalised.sort();
        normalised.dedup();
        Ok(Self { paths: normalised, strip })
    }

    /// A path that is not simply everything.
    pub(super) fn first_proper(&self) -> Option<&str> {
        self.paths.iter().map(String::as_str).find(|path| !path.is_empty())
    }

    /// The paths.
    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// A name without its leading directories; none if nothing is left of it.
    pub(super) fn stripped<'n>(&self, name: &'n str) -> Option<&'n str> {
        let mut rest = name;
        for _ in 0..self.strip {
            rest = rest.split_once('/')?.1;
        }
        (!rest.is_empty()).then_some(rest)
    }

    /// Positions of the paths that a name lies in.
    pub(super) fn containing(&self, name: &str) -> Vec<usize> {
        let inside = |path: &str| {
            path.is_empty()
                || name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        (0..self.paths.len()).filter(|index| inside(&self.paths[*index])).collect()
    }

    /// Whether a name is hidden below the path that asks for it.
    pub(super) fn hides(&self, index: usize, name: &str) -> bool {
        let below = name.strip_prefix(self.paths[index].as_str()).unwrap_or(name);
        below.split('/').any(|part| part.starts_with('.'))
    }
}

/// A name that stays inside the archive, without `.` parts and slashes at its end.
pub(super) fn checked(name: &[u8]) -> Result<String, Problem> {
    if name.len() > limits::ENTRY_NAME {
        let message = format!("a name in the archive is longer than {} bytes", limits::ENTRY_NAME);
        return Err(Problem::too_large(message));
    }
    let refused = |why: &str| {
        let shown = quote(&String::from_utf8_lossy(name));
        Err(Problem::unsafe_archive(format!("the name {shown} {why}")))
    };
    let Ok(text) = std::str::from_utf8(name) else {
        return refused("is not UTF-8");
    };
    if text.contains('\0') {
        return refused("has a NUL in it");
    }
    if text.contains('\\') {
        return refused("has a backslash in it");
    }
    if text.starts_with('/') {
        return refused("is absolute");
    }
    if matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return refused("begins with a drive");
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refused("leads out of its directory");
    }
    if parts.len() > limits::ENTRY_DEPTH {
        let message = format!("a name in the archive is more than {} directories deep", limits::ENTRY_DEPTH);
        return Err(Problem::too_large(message));
    }
    Ok(parts.join("/"))
}
