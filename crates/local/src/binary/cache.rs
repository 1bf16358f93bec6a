//! The cache of built programs: a directory per content hash, complete or not there.
//!
//! A build happens in a directory beside it that is renamed when it is whole. Builders of the same entry take turns
//! by a file lock, which the kernel releases for a builder that was killed; whatever such a one left half-made is
//! removed by the next.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process,
};

use sha2::{Digest, Sha256};

use super::Sources;
use crate::{
    error::{Error, Result},
    paths::{cache_directory, create, hexadecimal},
};

/// The hash under which what is made of these sources and settings is kept.
pub(super) fn key(sources: &Sources, settings: &[&str]) -> String {
    let mut hash = Sha256::new();
    let pairs = sources.iter().flat_map(|(name, content)| [*name, *content]);
    for part in pairs.chain(settings.iter().copied()) {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hexadecimal(&hash.finalize())[..16].to_owned()
}

/// The directory of an entry, made by `make` in an empty directory if it is not there yet.
pub(super) fn entry(kind: &str, key: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    entry_in(&cache_directory()?.join(kind), key, make)
}

fn entry_in(home: &Path, key: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let whole = home.join(key);
    if whole.is_dir() {
        return Ok(whole);
    }
    create(home)?;
    let lock_path = home.join(format!("{key}.lock"));
    let lock = File::create(&lock_path).map_err(Error::io("opening", &lock_path))?;
    lock.lock().map_err(Error::io("locking", &lock_path))?;
    if whole.is_dir() {
        return Ok(whole);
    }
    remove_half_made(home, key)?;
    let partial = home.join(format!("{key}.partial-{}", process::id()));
    create(&partial)?;
    if let Err(error) = make(&partial) {
        // The error at hand says more than one from the clean-up could; the next builder cleans up again.
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    fs::rename(&partial, &whole).map_err(Error::io("renaming", partial))?;
    Ok(whole)
}

/// Removes what killed builders left: of this entry, whose lock we hold, and of every other that nobody builds.
fn remove_half_made(home: &Path, key: &str) -> Result<()> {
    for entry in fs::read_dir(home).map_err(Error::io("reading", home))?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some((other, _)) = name.split_once(".partial-") else {
            continue;
        };
        let lock = File::create(home.join(format!("{other}.lock"))).ok();
        if other == key || lock.is_some_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(entry.path()).map_err(Error::io("removing", entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
        time::Duration,
    };

    use super::*;

    #[test]
    fn a_key_changes_with_every_part_and_with_how_they_are_parted() {
        let keys = [
            key(&[("a", "b")], &["c"]),
            key(&[("a", "x")], &["c"]),
            key(&[("x", "b")], &["c"]),
            key(&[("a", "b")], &["x"]),
            key(&[("ab", "")], &["c"]),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[at + 1..].iter().all(|other| other != one));
        }
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_is_tried_again() {
        let home = tempfile::tempdir().unwrap();
        let failed = entry_in(home.path(), "k", |dir| {
            fs::write(dir.join("half"), "x").unwrap();
            Err(Error::NotRoot)
        });
        assert!(failed.is_err());
        assert!(!home.path().join("k").exists());
        let made = entry_in(home.path(), "k", |dir| {
            assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
            fs::write(dir.join("whole"), "x").map_err(Error::io("writing", dir))
        });
        assert!(made.unwrap().join("whole").exists());
    }

    #[test]
    fn what_killed_builders_left_is_removed_and_what_others_build_is_not() {
        let home = tempfile::tempdir().unwrap();
        let left = ["k.partial-1", "older.partial-2"].map(|name| home.path().join(name));
        for path in &left {
            fs::create_dir(path).unwrap();
        }
        let in_use = home.path().join("other.partial-3");
        fs::create_dir(&in_use).unwrap();
        let builder = File::create(home.path().join("other.lock")).unwrap();
        builder.lock().unwrap();
        entry_in(home.path(), "k", |_| Ok(())).unwrap();
        assert!(left.iter().all(|path| !path.exists()));
        assert!(in_use.exists());
    }

    #[test]
    fn of_builders_at_the_same_time_one_builds_and_all_get_it() {
        let home = tempfile::tempdir().unwrap();
        let builds = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let made = entry_in(home.path(), "k", |dir| {
                        builds.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(50));
                        fs::write(dir.join("whole"), "x").map_err(Error::io("writing", dir))
                    });
                    assert!(made.unwrap().join("whole").exists());
                });
            }
        });
        assert_eq!(builds.load(Ordering::SeqCst), 1);
    }
}
