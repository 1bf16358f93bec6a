//! A zip.
//!
//! It is read by its directory, which is at the end. An archive in which directory and content could be read in
//! two ways (something before or behind it, two entries of one name, entries that share their bytes) is refused.

use std::io::{self, Cursor, Read};

use linchpin_words::limits;
use zip::{CompressionMethod, ZipArchive, result::ZipError};

use super::gather::{EntryKind, Gather, GatherError};
use crate::Problem;

/// The end of a zip's directory: a signature, counts, sizes, and the length of a comment.
const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
/// What is before it where numbers do not fit.
const LARGE_SIGNATURE: &[u8] = b"PK\x06\x07";
const LARGE_LENGTH: usize = 20;

/// Reads every entry of a zip.
pub(super) fn read(bytes: &[u8], gather: &mut Gather<'_>) -> Result<(), Problem> {
    let count = directory_entries(bytes)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    if archive.offset() != 0 {
        return Err(Problem::invalid_archive("there is something before the beginning of the archive"));
    }
    if archive.has_duplicate_names() || archive.len() != count {
        return Err(Problem::invalid_archive("a name is in the archive twice"));
    }
    if archive.has_overlapping_files().map_err(|error| unreadable(&error))? {
        return Err(Problem::invalid_archive("entries of the archive share their content"));
    }
    // One that says itself that it is too large is believed; one that says less is counted while it is read.
    let mut declared = 0_u64;
    for index in 0..count {
        let entry = archive.by_index_raw(index).map_err(|error| unreadable(&error))?;
        declared = declared.saturating_add(entry.size());
    }
    if declared > limits::SOURCE_UNPACKED {
        return Err(too_large());
    }
    let mut left = limits::SOURCE_UNPACKED;
    for index in 0..count {
        one(&mut archive, index, gather, &mut left)?;
    }
    Ok(())
}

/// How many entries the directory has, as it says itself.
fn directory_entries(bytes: &[u8]) -> Result<usize, Problem> {
    let number = |at: usize| {
        let pair: Option<[u8; 2]> = bytes.get(at..at + 2).and_then(|pair| pair.try_into().ok());
        pair.map(u16::from_le_bytes).map(usize::from)
    };
    // The comment behind the end is 64 KiB at most, and ends where the archive does.
    let ends = |at: &usize| {
        bytes[*at..].starts_with(END_SIGNATURE)
            && number(*at + END_LENGTH - 2).is_some_and(|comment| *at + END_LENGTH + comment == bytes.len())
    };
    let last = bytes.len().checked_sub(END_LENGTH);
    let end = last.and_then(|last| (last.saturating_sub(usize::from(u16::MAX))..=last).rev().find(ends));
    let Some(end) = end else {
        return Err(Problem::invalid_archive("the archive is not a whole zip"));
    };
    if end >= LARGE_LENGTH && bytes[end - LARGE_LENGTH..].starts_with(LARGE_SIGNATURE) {
        return Err(Problem::invalid_archive("the archive is a zip of the kind for very large ones"));
    }
    let count = number(end + 10).unwrap_or(usize::MAX);
    if count > limits::SOURCE_ENTRIES {
        let message = format!("the archive has more than {} entries", limits::SOURCE_ENTRIES);
        return Err(Problem::too_large(message));
    }
    Ok(count)
}

fn one(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    index: usize,
    gather: &mut Gather<'_>,
    left: &mut u64,
) -> Result<(), Problem> {
    let entry = archive.by_index_raw(index).map_err(|error| unreadable(&error))?;
    if entry.encrypted() {
        return Err(Problem::invalid_archive("the archive is encrypted"));
    }
    if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(Problem::invalid_archive("the archive is packed in a way that is not read here"));
    }
    // The bits that say what a file is, where the archive was made on a system that has them.
    let kind = match entry.unix_mode().map_or(0, |mode| mode & 0o170_000) {
        0o120_000 => EntryKind::Special("a symbolic link"),
        0o020_000 | 0o060_000 => EntryKind::Special("a device"),
        0o010_000 => EntryKind::Special("a pipe"),
        0o140_000 => EntryKind::Special("a socket"),
        _ if entry.name_raw().ends_with(b"/") => EntryKind::Directory,
        _ => EntryKind::File,
    };
    let name = entry.name_raw().to_vec();
    drop(entry);
    let mut content = archive.by_index(index).map_err(|error| unreadable(&error))?;
    let mut metered = Metered { inner: &mut content, left };
    gather.entry(&name, kind, &mut metered).map_err(|error| match error {
        GatherError::Refused(problem) => problem,
        GatherError::Read(error) if error.kind() == io::ErrorKind::QuotaExceeded => too_large(),
        GatherError::Read(_) => Problem::invalid_archive("the archive is damaged"),
    })
}

fn too_large() -> Problem {
    let limit = limits::SOURCE_UNPACKED >> 20;
    Problem::too_large(format!("the archive is larger than {limit} MiB once unpacked"))
}

fn unreadable(error: &ZipError) -> Problem {
    match error {
        ZipError::UnsupportedArchive(_) => {
            Problem::invalid_archive("the archive is a zip of an unusual kind")
        }
        _ => Problem::invalid_archive("the archive is not a whole zip"),
    }
}

/// A reader that stops when all entries together were too much.
struct Metered<'l, R> {
    inner: R,
    left: &'l mut u64,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let spent = u64::try_from(count).unwrap_or(u64::MAX);
        *self.left = self.left.checked_sub(spent).ok_or(io::ErrorKind::QuotaExceeded)?;
        Ok(count)
    }
}
