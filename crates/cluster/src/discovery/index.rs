//! Which kinds a server serves, as a value: words and kinds are looked up here.
//!
//! Pure. A bare word means one of Kubernetes' own kinds first ([`built_in`]), then the only kind that is called so;
//! names and plurals come before short names, as in kubectl.

use crate::call::Resource;
use linchpin_words::{Gvk, KindWord, reference::built_in};
use std::collections::{BTreeMap, BTreeSet};

/// One kind at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedKind {
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) namespaced: bool,
}

/// One version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedVersion {
    pub(crate) name: String,
    pub(crate) entries: Vec<IndexedKind>,
}

/// The versions of a group, the preferred one first.
pub(crate) type GroupVersions = Vec<IndexedVersion>;

/// Everything that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindIndex {
    groups: BTreeMap<String, GroupVersions>,
}

/// What a word turned out to mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordMeaning {
    /// This kind.
    One(Resource),
    /// No kind that is served.
    None,
    /// Kinds of several groups.
    Several(Vec<Gvk>),
}

impl FromIterator<(String, GroupVersions)> for KindIndex {
    fn from_iter<T: IntoIterator<Item = (String, GroupVersions)>>(groups: T) -> Self {
        Self { groups: groups.into_iter().filter(|(_, group)| !group.is_empty()).collect() }
    }
}

impl KindIndex {
    /// The group, where it is served.
    pub(crate) fn group(&self, name: &str) -> Option<&GroupVersions> {
        self.groups.get(name)
    }

    /// Names of all groups.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The same with one group replaced; nothing or an empty one removes it.
    pub(crate) fn with(&self, name: &str, group: Option<GroupVersions>) -> Self {
        let mut groups = self.groups.clone();
        match group.filter(|group| !group.is_empty()) {
            Some(group) => groups.insert(name.to_owned(), group),
            None => groups.remove(name),
        };
        Self { groups }
    }

    /// The resource of a kind at exactly that version.
    pub(crate) fn resource(&self, kind: &Gvk) -> Option<Resource> {
        let version = self.groups.get(&kind.group)?.iter().find(|version| version.name == kind.version)?;
        let entry = version.entries.iter().find(|entry| entry.kind == kind.kind)?;
        Some(Resource::new(kind.clone(), &entry.plural, entry.namespaced))
    }

    /// The versions of a kind that are served, the preferred one first.
    pub(crate) fn versions(&self, group: &str, kind: &str) -> Vec<&str> {
        let serves = |version: &&IndexedVersion| version.entries.iter().any(|entry| entry.kind == kind);
        let versions = self.groups.get(group).into_iter().flatten();
        versions.filter(serves).map(|version| version.name.as_str()).collect()
    }

    /// Whether some version of the group serves this plural.
    pub(crate) fn serves_plural(&self, group: &str, plural: &str) -> bool {
        let mut versions = self.groups.get(group).into_iter().flatten();
        versions.any(|version| version.entries.iter().any(|entry| entry.plural == plural))
    }

    /// What a word means here.
    pub fn meaning(&self, word: &KindWord) -> WordMeaning {
        if let Some(known) = built_in(word)
            && let Some(found) = self.preferred(known.group, known.kind, word.version.as_deref())
        {
            return WordMeaning::One(found);
        }
        let mut matches = self.matches(word, IndexedKind::is_named);
        if matches.is_empty() {
            matches = self.matches(word, IndexedKind::is_short);
        }
        if matches.len() > 1 && word.group.is_none() {
            let own: Vec<_> = matches.iter().filter(|(group, _)| is_built_in_group(group)).cloned().collect();
            if own.len() == 1 {
                matches = own.into_iter().collect();
            }
        }
        let mut found: Vec<Resource> = matches
            .iter()
            .filter_map(|(group, kind)| self.preferred(group, kind, word.version.as_deref()))
            .collect();
        match found.len() {
            0 => WordMeaning::None,
            1 => WordMeaning::One(found.remove(0)),
            _ => WordMeaning::Several(found.into_iter().map(|resource| resource.kind).collect()),
        }
    }

    fn matches(
        &self,
        word: &KindWord,
        called: impl Fn(&IndexedKind, &str) -> bool,
    ) -> BTreeSet<(String, String)> {
        let mut matches = BTreeSet::new();
        for (group, versions) in &self.groups {
            if word.group.as_ref().is_some_and(|wanted| wanted != group) {
                continue;
            }
            for version in versions {
                if word.version.as_ref().is_some_and(|wanted| *wanted != version.name) {
                    continue;
                }
                for entry in version.entries.iter().filter(|entry| called(entry, &word.word)) {
                    matches.insert((group.clone(), entry.kind.clone()));
                }
            }
        }
        matches
    }

    /// A kind at the version asked for, or the preferred one that serves it.
    fn preferred(&self, group: &str, kind: &str, version: Option<&str>) -> Option<Resource> {
        let version = match version {
            Some(version) => version,
            None => self.versions(group, kind).first()?,
        };
        self.resource(&Gvk::new(group, version, kind))
    }
}

impl IndexedKind {
    fn is_named(&self, word: &str) -> bool {
        self.kind.eq_ignore_ascii_case(word) || self.plural == word || self.singular == word
    }

    fn is_short(&self, word: &str) -> bool {
        self.short.iter().any(|short| short == word)
    }
}

/// Groups that Kubernetes itself brings: the core group, those without a dot and those under k8s.io.
fn is_built_in_group(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, short: &[&str]) -> IndexedKind {
        let singular = kind.to_lowercase();
        IndexedKind {
            kind: kind.to_owned(),
            plural: format!("{singular}s"),
            singular,
            short: short.iter().map(ToString::to_string).collect(),
            namespaced: true,
        }
    }

    fn index() -> KindIndex {
        let version = |name: &str, entries| IndexedVersion { name: name.to_owned(), entries };
        [
            (String::new(), vec![version("v1", vec![entry("Pod", &["po"]), entry("Service", &["svc"])])]),
            ("apps".into(), vec![version("v1", vec![entry("Deployment", &["deploy"])])]),
            (
                "example.com".into(),
                vec![
                    version("v1", vec![entry("Widget", &["w"])]),
                    version("v1beta1", vec![entry("Widget", &["w"]), entry("Gadget", &["po"])]),
                ],
            ),
            ("other.org".into(), vec![version("v1", vec![entry("Widget", &[]), entry("Service", &[])])]),
            ("serving.knative.dev".into(), vec![version("v1", vec![entry("Service", &["ksvc"])])]),
        ]
        .into_iter()
        .collect()
    }

    fn meaning(word: &str) -> String {
        match index().meaning(&KindWord::parse(word).unwrap()) {
            WordMeaning::One(resource) => resource.kind.to_string(),
            WordMeaning::None => "none".into(),
            WordMeaning::Several(kinds) => format!("{} kinds", kinds.len()),
        }
    }

    #[test]
    fn a_bare_word_is_a_built_in_kind_before_anything_else() {
        assert_eq!(meaning("service"), "v1, Kind=Service");
        assert_eq!(meaning("svc"), "v1, Kind=Service");
        assert_eq!(meaning("Deploy"), "apps/v1, Kind=Deployment");
        assert_eq!(meaning("po"), "v1, Kind=Pod", "a short name of somebody else's does not get in the way");
    }

    #[test]
    fn another_word_is_the_only_kind_called_so() {
        assert_eq!(meaning("gadgets"), "example.com/v1beta1, Kind=Gadget");
        assert_eq!(meaning("ksvc"), "serving.knative.dev/v1, Kind=Service");
        assert_eq!(meaning("nothing"), "none");
    }

    #[test]
    fn several_kinds_called_so_must_be_told_apart() {
        assert_eq!(meaning("widget"), "2 kinds");
        assert_eq!(meaning("widget.example.com"), "example.com/v1, Kind=Widget");
        assert_eq!(meaning("widget.v1beta1.example.com"), "example.com/v1beta1, Kind=Widget");
        assert_eq!(meaning("service.serving.knative.dev"), "serving.knative.dev/v1, Kind=Service");
        assert_eq!(meaning("widget.v7.example.com"), "none");
    }

    #[test]
    fn a_group_can_come_and_go() {
        let index = index();
        let kind = Gvk::new("example.com", "v1", "Widget");
        assert_eq!(index.resource(&kind).unwrap().plural, "widgets");
        let without = index.with("example.com", None);
        assert_eq!(without.resource(&kind), None);
        assert_eq!(without.with("example.com", index.group("example.com").cloned()), index);
        assert_eq!(index.versions("example.com", "Gadget"), ["v1beta1"]);
    }
}
