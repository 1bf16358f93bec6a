//! The waiter's image: `linchpin-wait` as a real node can run it.
//!
//! An image from scratch has no libraries, so only a static program is of use there; `make wait` builds one. It is looked for
//! beside the running program and where `make wait` puts it. Called when a node starts, and by tests that need it.

use std::{
    env,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::Image;

const PROGRAM: &str = "linchpin-wait";
/// The name under which pods find it.
const IMAGE: &str = "localhost/linchpin-wait:1";
/// How much of a program is read: its headers are at its beginning.
const BEGINNING: u64 = 4096;
/// The kind of the header that names a loader of libraries.
const LOADER: usize = 3;

/// The waiter's image, where a static waiter is found.
pub fn waiter_image() -> Option<Image> {
    let program = env::current_exe().ok()?;
    let built = format!("{}-unknown-linux-musl/wait/{PROGRAM}", env::consts::ARCH);
    let directories = program.ancestors().skip(1).take(3);
    let candidates = directories.flat_map(|dir| [dir.join(PROGRAM), dir.join(&built)]);
    candidates.into_iter().find(|path| is_static(path)).map(|path: PathBuf| Image::of(IMAGE, &path))
}

/// Whether a file is a program that needs no libraries: one without a loader.
fn is_static(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut begin));
    read.is_ok() && names_loader(&begin) == Some(false)
}

/// Whether a 64-bit little-endian ELF program names a loader; none if it is no such program.
fn names_loader(begin: &[u8]) -> Option<bool> {
    let bytes = |at: usize, count: usize| begin.get(at..at.checked_add(count)?);
    let number = |at: usize, count: usize| {
        Some(bytes(at, count)?.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    if bytes(0, 6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds = (0..count).map(|index| number(first.checked_add(index * size)?, 4));
    kinds.collect::<Option<Vec<usize>>>().map(|kinds| kinds.contains(&LOADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(kinds: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            let mut header = [0; 56];
            header[0] = *kind;
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        assert_eq!(names_loader(&program(&[6, 3, 1])), Some(true));
        assert_eq!(names_loader(&program(&[1, 1, 2])), Some(false));
        assert!(!is_static(&env::current_exe().unwrap()), "tests are linked with libraries");
    }

    #[test]
    fn what_is_no_program_is_not_static_either() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01", &program(&[1])[..66]] {
            assert_eq!(names_loader(bytes), None);
        }
        let mut far = program(&[1]);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(names_loader(&far), None);
        assert!(!is_static(Path::new("/nowhere")));
    }
}
