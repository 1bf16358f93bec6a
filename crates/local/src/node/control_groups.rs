//! The control groups below which the node's pods live, named after the cluster, so that two nodes never share one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

const ROOT: &str = "/sys/fs/cgroup";

/// Makes a group called `name` in every hierarchy.
pub(crate) fn create(name: &str) -> Result<()> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        return create_unified(root, name);
    }
    for hierarchy in hierarchies(root)? {
        let group = hierarchy.join(name);
        fs::create_dir_all(&group).map_err(Error::io("creating", &group))?;
        // A new cpuset is empty, and nothing can run in it.
        for setting in ["cpuset.cpus", "cpuset.mems"] {
            let from = hierarchy.join(setting);
            if let Ok(value) = fs::read(&from) {
                let to = group.join(setting);
                fs::write(&to, value).map_err(Error::io("writing", to))?;
            }
        }
    }
    Ok(())
}

/// The directories of separate hierarchies (version 1).
fn hierarchies(root: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root).map_err(Error::io("reading", root))?;
    let paths = entries.flatten().map(|entry| entry.path());
    // "unified" is version 2 mounted beside version 1: nothing is limited there.
    let is_hierarchy = |path: &PathBuf| path.join("cgroup.procs").exists() && !path.ends_with("unified");
    Ok(paths.filter(is_hierarchy).collect())
}

/// The one hierarchy of version 2: a group's children have only the controllers that it hands down.
fn create_unified(root: &Path, name: &str) -> Result<()> {
    let group = root.join(name);
    fs::create_dir_all(&group).map_err(Error::io("creating", &group))?;
    let known = root.join("cgroup.controllers");
    let known = fs::read_to_string(&known).map_err(Error::io("reading", known))?;
    for parent in [root, &group] {
        for controller in known.split_whitespace() {
            let control = parent.join("cgroup.subtree_control");
            fs::write(&control, format!("+{controller}")).map_err(Error::io("writing", control))?;
        }
    }
    Ok(())
}
