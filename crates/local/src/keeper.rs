//! The keeper: a process that cleans up after a cluster when its owner is gone, however the owner ended.
//!
//! It waits on a pipe whose other end only the owner holds. The kernel closes that end when the owner dies, and the
//! keeper then ends and removes everything that belongs to the cluster. The same program, called directly, is `down`.

use std::{
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    error::{Error, Result},
    paths::Directory,
};

/// A keeper that waits for its owner's end.
#[derive(Debug)]
pub(crate) struct ClusterKeeper {
    process: Child,
    program: PathBuf,
    dir: Directory,
}

impl ClusterKeeper {
    /// Begins to watch over a cluster, before anything of it exists.
    pub(crate) fn watch(program: &Path, dir: &Directory) -> Result<Self> {
        let process = Command::new(program)
            .arg("watch")
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(Error::io("starting", program))?;
        Ok(Self { process, program: program.to_owned(), dir: dir.clone() })
    }

    /// Ends the watch; the cluster lives on without an owner.
    pub(crate) fn release(mut self) -> Result<()> {
        let said = self.process.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(b"release\n"));
        said.and_then(|()| self.process.wait()).map(drop).map_err(Error::io("releasing", self.program))
    }

    /// Ends the cluster, and returns when nothing of it is left.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        let mut said = String::new();
        if let Some(mut errors) = self.process.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        match self.process.wait() {
            Ok(status) if status.success() => Ok(()),
            // It was killed, or failed at something that may succeed now: once more, directly.
            _ => clean(&self.program, &self.dir),
        }
    }
}

/// Ends and removes everything of the cluster in `dir`.
pub(crate) fn clean(program: &Path, dir: &Directory) -> Result<()> {
    let output = Command::new(program)
        .arg("clean")
        .arg(dir.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("starting", program))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::LeftBehind { dir: dir.path().to_owned(), why })
}
