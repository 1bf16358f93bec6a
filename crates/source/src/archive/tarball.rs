//! A gzipped tar.
//!
//! The entries are taken as they are in the archive; extended headers are read here, each within its bound, so that
//! no header can make the reader hold megabytes. Where headers disagree about a size the archive is refused: readers
//! that choose differently would see different files.

use std::{
    cell::Cell,
    io::{self, Read},
};

use flate2::bufread::MultiGzDecoder;
use linchpin_words::limits;
use tar::{Archive, Entry, EntryType};

use super::gather::{EntryKind, Gather, GatherError};
use crate::Problem;

/// Reads every entry of a gzipped tar.
pub(super) fn read(bytes: &[u8], gather: &mut Gather<'_>) -> Result<(), Problem> {
    let left = Cell::new(Some(limits::SOURCE_UNPACKED));
    let explain = |error: GatherError| match error {
        GatherError::Refused(problem) => problem,
        GatherError::Read(_) if left.get().is_none() => {
            let limit = limits::SOURCE_UNPACKED >> 20;
            Problem::too_large(format!("the archive is larger than {limit} MiB once unpacked"))
        }
        GatherError::Read(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Problem::invalid_archive("the archive ends too early")
        }
        GatherError::Read(_) => Problem::invalid_archive("the archive is not a gzipped tar"),
    };
    let mut archive = Archive::new(Metered { inner: MultiGzDecoder::new(bytes), left: &left });
    entries(&mut archive, gather).map_err(explain)?;
    // Behind the end there is padding and nothing else.
    let mut rest = archive.into_inner();
    let mut block = [0; 4096];
    loop {
        let count = rest.read(&mut block).map_err(|error| explain(GatherError::Read(error)))?;
        if count == 0 {
            return Ok(());
        }
        if block[..count].iter().any(|byte| *byte != 0) {
            return Err(Problem::invalid_archive("there is something behind the end of the archive"));
        }
    }
}

fn entries<R: Read>(archive: &mut Archive<R>, gather: &mut Gather<'_>) -> Result<(), GatherError> {
    let mut extended = Extended::default();
    for entry in archive.entries().map_err(GatherError::Read)?.raw(true) {
        let mut entry = entry.map_err(GatherError::Read)?;
        let size = entry.size();
        let kind = match entry.header().entry_type() {
            EntryType::XHeader => {
                extended.take(&extension(&mut entry)?)?;
                continue;
            }
            EntryType::XGlobalHeader => {
                let mut global = Extended::default();
                global.take(&extension(&mut entry)?)?;
                if global != Extended::default() {
                    return Err(invalid("one header names or sizes all entries of the archive"));
                }
                continue;
            }
            EntryType::GNULongName => {
                let mut name = extension(&mut entry)?;
                while name.last() == Some(&0) {
                    name.pop();
                }
                extended.name = Some(name);
                continue;
            }
            EntryType::GNULongLink => continue,
            EntryType::GNUSparse => return Err(invalid("the archive has a sparse file")),
            EntryType::Regular | EntryType::Continuous => EntryKind::File,
            EntryType::Directory => EntryKind::Directory,
            EntryType::Link => EntryKind::Special("a link"),
            EntryType::Symlink => EntryKind::Special("a symbolic link"),
            EntryType::Char | EntryType::Block => EntryKind::Special("a device"),
            EntryType::Fifo => EntryKind::Special("a pipe"),
            _ => return Err(invalid("the archive has an entry of an unknown kind")),
        };
        let own = std::mem::take(&mut extended);
        if own.size.is_some_and(|stated| stated != size) {
            return Err(invalid("two headers of one entry state different sizes"));
        }
        let name = own.name.unwrap_or_else(|| entry.path_bytes().into_owned());
        let kind = if kind == EntryKind::File && name.ends_with(b"/") { EntryKind::Directory } else { kind };
        gather.entry(&name, kind, &mut ExactReader { inner: &mut entry, left: size })?;
    }
    if extended != Extended::default() {
        return Err(invalid("the archive ends with a header"));
    }
    Ok(())
}

fn invalid(message: &str) -> GatherError {
    Problem::invalid_archive(message).into()
}

/// The content of an extended header.
fn extension<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, GatherError> {
    if entry.size() > limits::ENTRY_EXTENSION {
        return Err(Problem::too_large("a header of the archive is too large").into());
    }
    let mut content = Vec::new();
    let mut exactly = ExactReader { left: entry.size(), inner: entry };
    exactly.read_to_end(&mut content).map_err(GatherError::Read)?;
    Ok(content)
}

/// What extended headers say of the entry that follows them.
#[derive(Default, PartialEq, Eq)]
struct Extended {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extended {
    /// Reads records `length key=value\n`.
    fn take(&mut self, mut records: &[u8]) -> Result<(), GatherError> {
        while !records.is_empty() {
            let record =
                next_record(&mut records).ok_or_else(|| invalid("a header of the archive is garbled"))?;
            match record {
                (b"path", value) => self.name = Some(value.to_vec()),
                (b"size", value) => {
                    let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(|| invalid("a header of the archive is garbled"))?);
                }
                (key, _) if key.starts_with(b"GNU.sparse.") => {
                    return Err(invalid("the archive has a sparse file"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Takes one record off.
fn next_record<'r>(records: &mut &'r [u8]) -> Option<(&'r [u8], &'r [u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let record = records.get(space + 1..length)?.strip_suffix(b"\n")?;
    *records = &records[length..];
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..]))
}

/// A reader that stops when too much was read.
struct Metered<'c, R> {
    inner: R,
    /// What may still be read; none once more was there.
    left: &'c Cell<Option<u64>>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let spent = u64::try_from(count).unwrap_or(u64::MAX);
        let left = self.left.get().and_then(|left| left.checked_sub(spent));
        self.left.set(left);
        if left.is_none() { Err(io::Error::other("too much")) } else { Ok(count) }
    }
}

/// A reader that does not take an early end for the end.
struct ExactReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for ExactReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}
