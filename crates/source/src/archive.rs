//! From bytes to manifests: a gzipped tar, a zip or plain YAML, recognised by their first bytes.
//!
//! Nothing touches a disk. Every bound is counted while reading and never believed from a header. An entry whose name
//! would reach outside of the archive refuses the whole archive, wherever it lies; a link or a device refuses it if it
//! lies in the paths that are asked for. What is kept is sorted by path, so the order in the archive means nothing.

mod gather;
mod name;
mod tarball;
#[cfg(test)]
mod tests;
mod zipped;

use linchpin_words::{Reason, limits, text::quote};

use self::gather::Gather;
pub use self::name::{ManifestSelection, SelectionError};
use crate::Problem;

/// One text of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Where it lies in the archive, after leading directories were taken off; empty for a source that is one text.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Reads the manifests that `selection` asks for.
pub fn unpack(bytes: &[u8], selection: &ManifestSelection) -> Result<Vec<Manifest>, Problem> {
    if bytes.len() > limits::SOURCE_DOWNLOAD {
        let limit = limits::SOURCE_DOWNLOAD >> 20;
        return Err(Problem::too_large(format!("the source is larger than {limit} MiB")));
    }
    let mut gather = Gather::new(selection);
    if is_gzip(bytes) {
        tarball::read(bytes, &mut gather)?;
    } else if is_zip(bytes) {
        zipped::read(bytes, &mut gather)?;
    } else {
        return plain(bytes, selection);
    }
    gather.finish()
}

/// A source that is one text.
fn plain(bytes: &[u8], selection: &ManifestSelection) -> Result<Vec<Manifest>, Problem> {
    if let Some(path) = selection.first_proper() {
        let message = format!("the source is one text, not an archive: it has no {}", quote(path));
        return Err(Problem::new(Reason::PathNotFound, message));
    }
    let text = manifest_text(bytes.to_vec(), "the source")?;
    Ok(vec![Manifest { path: String::new(), text }])
}

/// The text of one manifest.
fn manifest_text(bytes: Vec<u8>, what: &str) -> Result<String, Problem> {
    if bytes.len() > limits::YAML_SOURCE {
        let limit = limits::YAML_SOURCE >> 20;
        return Err(Problem::too_large(format!("{what} is larger than {limit} MiB")));
    }
    if is_gzip(&bytes) || is_zip(&bytes) {
        return Err(Problem::invalid_archive(format!("{what} is itself an archive")));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        Problem::invalid_archive(format!("{what} is neither UTF-8 text nor a gzipped tar nor a zip"))
    })
}

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn is_zip(bytes: &[u8]) -> bool {
    // An archive with entries, and one without.
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}
