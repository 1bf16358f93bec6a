//! What kinds that are not Kubernetes' own are called in RBAC.
//!
//! Known are our own kinds, KubeFlex's ControlPlane (other clusters are reached through it), those of Porch, those whose definitions are among the manifests, and those that a cluster serves which was
//! asked. All others are guessed: the plural as most definitions form it, and that their objects live in namespaces.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use kube::Client;
use linchpin_cluster::{KindIndex, Resource, WordMeaning};
use linchpin_doors::Registry;
use linchpin_engine::{
    contract::Served,
    rights::{CONTROL_PLANES, control_plane},
};
use linchpin_words::{Gvk, KindWord};
use serde_json::{Value, json};

/// Porch's kinds that bundles with packages look at: group, kind, plural.
const PORCH: [(&str, &str, &str); 4] = [
    ("config.porch.kpt.dev", "PackageVariant", "packagevariants"),
    ("config.porch.kpt.dev", "Repository", "repositories"),
    ("porch.kpt.dev", "PackageRevision", "packagerevisions"),
    ("porch.kpt.dev", "PackageRevisionResources", "packagerevisionresources"),
];

fn porch((group, kind, plural): &(&str, &str, &str)) -> ListedKind {
    let kind = Gvk::new(*group, "v1alpha1", *kind);
    ListedKind { kind, plural: (*plural).to_owned(), short: Vec::new(), namespaced: true }
}

/// One kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedKind {
    kind: Gvk,
    plural: String,
    short: Vec<String>,
    namespaced: bool,
}

impl ListedKind {
    fn is_called(&self, word: &KindWord) -> bool {
        word.group.as_ref().is_none_or(|group| *group == self.kind.group)
            && (self.kind.kind.eq_ignore_ascii_case(&word.word)
                || self.plural == word.word
                || self.short.contains(&word.word))
    }

    fn of(definition: &Value) -> Option<Self> {
        let text = |path: &str| definition.pointer(path).and_then(Value::as_str);
        let short = definition.pointer("/spec/names/shortNames").and_then(Value::as_array);
        Some(Self {
            kind: Gvk::new(
                text("/spec/group")?,
                text("/spec/versions/0/name").unwrap_or("v1"),
                text("/spec/names/kind")?,
            ),
            plural: text("/spec/names/plural")?.to_owned(),
            short: short.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            namespaced: text("/spec/scope") != Some("Cluster"),
        })
    }

    fn served(&self) -> Served {
        Served::Yes {
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
            reports_status: None,
        }
    }
}

/// All kinds that are known, and those that had to be guessed.
#[derive(Debug, Default)]
pub(crate) struct KnownKinds {
    known: Vec<ListedKind>,
    /// What the cluster serves that was asked.
    served: KindIndex,
    guessed: BTreeSet<String>,
}

impl KnownKinds {
    /// Our own kinds, and those of these definitions.
    pub(super) fn new(definitions: &[Value], registry: &Registry) -> Self {
        let ours = registry.definitions();
        let ours = ours.iter().filter_map(|definition| ListedKind::of(&json!(definition)));
        let mut known: Vec<ListedKind> = ours.chain(definitions.iter().filter_map(ListedKind::of)).collect();
        let plane = ListedKind {
            kind: control_plane(),
            plural: CONTROL_PLANES.to_owned(),
            short: vec!["cp".to_owned(), "cps".to_owned()],
            namespaced: false,
        };
        for entry in std::iter::once(plane).chain(PORCH.iter().map(porch)) {
            if !known.iter().any(|known| known.kind.group_kind() == entry.kind.group_kind()) {
                known.push(entry);
            }
        }
        Self { known, ..Self::default() }
    }

    /// Adds what a cluster serves.
    pub(super) async fn discover(&mut self, client: Client) -> Result<()> {
        self.served = linchpin_cluster::served(&client)
            .await
            .map_err(|why| anyhow!("asking the cluster which kinds it serves: {why}"))?;
        Ok(())
    }

    /// The kind that a word means. What another cluster serves is not known here, and so not remarked upon.
    pub(super) fn answer(&mut self, word: &KindWord, here: bool) -> Served {
        let mut meant: Vec<ListedKind> =
            self.known.iter().filter(|entry| entry.is_called(word)).cloned().collect();
        let is_known = |kind: &Gvk| meant.iter().any(|known| known.kind.group_kind() == kind.group_kind());
        match self.served.meaning(word) {
            WordMeaning::One(Resource { kind, plural, namespaced }) if !is_known(&kind) => {
                meant.push(ListedKind { kind, plural, short: Vec::new(), namespaced });
            }
            WordMeaning::One(_) | WordMeaning::None => {}
            WordMeaning::Several(mut kinds) => {
                kinds.retain(|kind| !is_known(kind));
                return Served::Several(meant.into_iter().map(|entry| entry.kind).chain(kinds).collect());
            }
        }
        match meant.as_slice() {
            [one] => one.served(),
            [] => {
                let entry = guess(word);
                if here {
                    let group = &entry.kind.group;
                    let dot = if group.is_empty() { "" } else { "." };
                    self.guessed.insert(format!("{}{dot}{group}", entry.plural));
                }
                entry.served()
            }
            several => Served::Several(several.iter().map(|entry| entry.kind.clone()).collect()),
        }
    }

    /// What a reader must know about guesses.
    pub(super) fn notes(&self, asked: bool) -> Vec<String> {
        let advice = if asked {
            "the cluster does not serve it yet"
        } else {
            "give its CustomResourceDefinition with -f, or --kubeconfig or --context to ask a cluster"
        };
        let note = |resource: &String| {
            format!(
                "guessed: that {resource} is its plural, and that its objects live in namespaces; {advice}"
            )
        };
        self.guessed.iter().map(note).collect()
    }
}

fn guess(word: &KindWord) -> ListedKind {
    ListedKind {
        kind: Gvk::new(
            word.group.clone().unwrap_or_default(),
            word.version.clone().unwrap_or_else(|| "v1".to_owned()),
            &word.word,
        ),
        plural: plural_of(&word.word),
        short: Vec::new(),
        namespaced: true,
    }
}

/// The plural of a kind in lower case, by the rule that generators of definitions follow: `y` becomes `ies` (unless a
/// vowel comes before), hissing sounds get `es`, all others `s`. What ends in a single `s` is taken for a plural.
pub(crate) fn plural_of(word: &str) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if ends(&["ss", "us", "is", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    if word.ends_with('s') {
        return word.to_owned();
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::server::answering;

    #[test]
    fn plurals_are_formed_as_generators_form_them() {
        for (word, plural) in [
            ("controlplane", "controlplanes"),
            ("bindingpolicy", "bindingpolicies"),
            ("gateway", "gateways"),
            ("ingress", "ingresses"),
            ("workstatus", "workstatuses"),
            ("mesh", "meshes"),
            ("payments", "payments"),
        ] {
            assert_eq!(plural_of(word), plural);
        }
    }

    #[tokio::test]
    async fn a_kind_that_a_cluster_serves_is_known_by_its_short_name() {
        let client = answering(|request| {
            let resource = json!({"resource": "oxen", "responseKind": {"group": "a.b", "version": "v1", "kind": "Ox"},
                "scope": "Cluster", "shortNames": ["o"], "verbs": ["get"]});
            let group = json!({"metadata": {"name": "a.b"}, "versions": [{"version": "v1", "resources": [resource]}]});
            let items = if request.starts_with("GET /apis") { vec![group] } else { Vec::new() };
            ("200 OK", json!({"kind": "APIGroupDiscoveryList", "items": items}))
        });
        let mut kinds = KnownKinds::new(&[], &linchpin_doors::registry());
        kinds.discover(client).await.unwrap();
        let found = kinds.answer(&KindWord::parse("o").unwrap(), true);
        let Served::Yes { plural, namespaced, .. } = found else { panic!("{found:?}") };
        assert_eq!((plural.as_str(), namespaced), ("oxen", false));
        assert!(kinds.notes(true).is_empty());
    }

    #[test]
    fn a_definition_among_the_manifests_is_no_guess() {
        let definition = json!({"spec": {"group": "a.b", "scope": "Cluster", "versions": [{"name": "v2"}],
            "names": {"kind": "Ox", "plural": "oxen", "shortNames": ["o"]}}});
        let mut kinds = KnownKinds::new(&[definition], &linchpin_doors::registry());
        for word in ["ox", "oxen.a.b", "o"] {
            let Served::Yes { plural, namespaced, .. } = kinds.answer(&KindWord::parse(word).unwrap(), true)
            else {
                panic!("{word} is not known");
            };
            assert_eq!((plural.as_str(), namespaced), ("oxen", false));
        }
        assert!(kinds.notes(false).is_empty());
        kinds.answer(&KindWord::parse("cow.a.b").unwrap(), true);
        assert!(kinds.notes(false)[0].starts_with("guessed: that cows.a.b is its plural"));
    }
}
