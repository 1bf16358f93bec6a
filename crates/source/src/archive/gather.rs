//! What is kept of an archive, and the counts that bound it. Both formats report their entries here, one by one.

use std::{collections::BTreeMap, io::Read};

use linchpin_words::{Reason, limits, text::quote};

use super::{
    Manifest, manifest_text,
    name::{ManifestSelection, checked},
};
use crate::Problem;

/// Files that say that a directory must be rendered first.
const RENDERED: [(&str, &str); 4] = [
    ("kustomization.yaml", KUSTOMIZE),
    ("kustomization.yml", KUSTOMIZE),
    ("Kustomization", KUSTOMIZE),
    ("Chart.yaml", HELM),
];

const KUSTOMIZE: &str = "render it in CI (kustomize build DIR | flux push artifact …), or depend on a Flux Kustomization as an object";
const HELM: &str =
    "render it in CI (helm template … | flux push artifact …), or depend on a Flux HelmRelease as an object";

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    /// A link, a device, a pipe: nothing that a manifest is.
    Special(&'static str),
}

/// The manifests kept so far.
pub(super) struct Gather<'s> {
    selection: &'s ManifestSelection,
    kept: BTreeMap<String, String>,
    /// For each path of the selection, whether it found something.
    found: Vec<bool>,
    entries: usize,
    bytes: usize,
}

impl<'s> Gather<'s> {
    pub(super) fn new(selection: &'s ManifestSelection) -> Self {
        let found = vec![false; selection.paths().len()];
        Self { selection, kept: BTreeMap::new(), found, entries: 0, bytes: 0 }
    }

    /// One entry. Its content is read only if it is a manifest that is asked for; then it is read to its end.
    pub(super) fn entry(
        &mut self,
        name: &[u8],
        kind: EntryKind,
        content: &mut dyn Read,
    ) -> Result<(), GatherError> {
        self.entries += 1;
        if self.entries > limits::SOURCE_ENTRIES {
            let message = format!("the archive has more than {} entries", limits::SOURCE_ENTRIES);
            return Err(Problem::too_large(message).into());
        }
        let name = checked(name)?;
        let Some(name) = self.selection.stripped(&name) else { return Ok(()) };
        let asking = self.selection.containing(name);
        if asking.is_empty() {
            return Ok(());
        }
        match kind {
            EntryKind::Directory => return Ok(()),
            EntryKind::Special(what) => {
                let message = format!(
                    "{} is {what}; only files can be applied: leave it out, or name other paths",
                    quote(name)
                );
                return Err(Problem::unsafe_archive(message).into());
            }
            EntryKind::File => {}
        }
        let asking: Vec<usize> =
            asking.into_iter().filter(|index| !self.selection.hides(*index, name)).collect();
        if asking.is_empty() {
            return Ok(());
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        if let Some((_, remedy)) = RENDERED.iter().find(|(rendered, _)| *rendered == file) {
            let message = format!("{} must be rendered, which is not done here: {remedy}", quote(name));
            return Err(Problem::new(Reason::SourceUnsupported, message).into());
        }
        let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
        if !matches!(extension, "yaml" | "yml" | "json") {
            return Ok(());
        }
        for index in asking {
            self.found[index] = true;
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(limits::YAML_SOURCE).unwrap_or(u64::MAX);
        content.take(limit + 1).read_to_end(&mut bytes).map_err(GatherError::Read)?;
        let text = manifest_text(bytes, &quote(name))?;
        self.bytes += text.len();
        if self.bytes > limits::SOURCE_MANIFESTS {
            let limit = limits::SOURCE_MANIFESTS >> 20;
            return Err(
                Problem::too_large(format!("the manifests together are larger than {limit} MiB")).into()
            );
        }
        if self.kept.insert(name.to_owned(), text).is_some() {
            return Err(Problem::invalid_archive(format!("{} is in the archive twice", quote(name))).into());
        }
        Ok(())
    }

    /// The manifests, by path.
    pub(super) fn finish(self) -> Result<Vec<Manifest>, Problem> {
        let paths = self.selection.paths().iter().zip(&self.found);
        if let Some((path, _)) = paths.into_iter().find(|(path, found)| !path.is_empty() && !**found) {
            let message = format!("there is no .yaml, .yml or .json file at {} of the source", quote(path));
            return Err(Problem::new(Reason::PathNotFound, message));
        }
        Ok(self.kept.into_iter().map(|(path, text)| Manifest { path, text }).collect())
    }
}

/// Why an entry was not taken: it is refused, or it cannot be read.
pub(super) enum GatherError {
    Refused(Problem),
    Read(std::io::Error),
}

impl From<Problem> for GatherError {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}
