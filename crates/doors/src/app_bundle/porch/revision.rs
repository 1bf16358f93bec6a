//! Which revision of a package is asked for, in the shape that the installed Porch has. Pure.
//!
//! Until the spring of 2025 a revision was a text (`v1`, `main`); since then it is a number, and a branch or workspace
//! is named by `workspaceName`. The definition's own schema says which. Newer versions go by `workspaceName` alone and
//! take the branch `main` where there is none, so the workspace of a numbered revision is given too once it is known.

use serde_json::{Map, Value, json};

use super::look::{LiveVariant, Revision};

/// What the author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestedRevision {
    /// A numbered revision: `v1` or `1`.
    Number(u64),
    /// A branch or workspace.
    Branch(String),
    /// Whatever is the newest published one.
    Latest,
}

impl RequestedRevision {
    pub(super) fn parse(text: &str) -> Self {
        match number(text) {
            Some(number) => Self::Number(number),
            None if text == "latest" => Self::Latest,
            None => Self::Branch(text.to_owned()),
        }
    }
}

/// The number of a revision: `v3` and `3` are the third; a branch, which Porch counts as -1, has none.
pub(super) fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The fields of `spec.upstream` that the installed definition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpstreamShape {
    /// Whether `revision` is a number, as opposed to a text.
    number: bool,
    /// Whether there is a `workspaceName`.
    workspace: bool,
}

/// Where the definition cannot be seen: as it is since 2025.
impl Default for UpstreamShape {
    fn default() -> Self {
        Self { number: true, workspace: true }
    }
}

impl UpstreamShape {
    /// The shape in a `CustomResourceDefinition`, for one version.
    pub(super) fn of(definition: &Value, version: &str) -> Self {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let served = versions.into_iter().flatten().find(|one| one["name"] == version);
        let upstream = served.and_then(|one| {
            one.pointer("/schema/openAPIV3Schema/properties/spec/properties/upstream/properties")
        });
        upstream.map_or_else(Self::default, |fields| Self {
            number: fields.pointer("/revision/type").is_none_or(|kind| kind != "string"),
            workspace: fields.get("workspaceName").is_some(),
        })
    }
}

/// What is asked of Porch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UpstreamChoice {
    pub revision: Option<Value>,
    pub workspace: Option<String>,
    /// Its number, where it has one.
    pub number: Option<u64>,
    /// For people.
    pub text: String,
}

impl UpstreamChoice {
    /// As fields of `spec.upstream`.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        if let Some(revision) = &self.revision {
            fields.insert("revision".to_owned(), revision.clone());
        }
        if let Some(workspace) = &self.workspace {
            fields.insert("workspaceName".to_owned(), json!(workspace));
        }
        fields
    }

    /// Whether a revision was made of what is asked for, as far as it says what it was made of: Porch's own rule.
    pub(super) fn is_upstream_of(&self, downstream: &Revision) -> bool {
        let Some(reference) = &downstream.upstream else {
            return true;
        };
        let made_of = number(reference.rsplit('/').next().unwrap_or_default());
        !reference.starts_with("drafts") && made_of == self.number
    }
}

/// The newest published revision.
pub(super) fn newest<'r>(revisions: &[&'r Revision]) -> Option<&'r Revision> {
    let published = revisions.iter().copied().filter(|one| one.is_published() && one.number.is_some());
    published.max_by_key(|one| one.number)
}

/// What is asked of Porch; none while nothing is published and the newest is asked for.
///
/// `upstream` are the revisions of the package that are seen, `live` the variant as it is: what it follows already is
/// kept while its Repository shows nothing.
pub(super) fn choose(
    asked: &RequestedRevision,
    shape: UpstreamShape,
    upstream: &[&Revision],
    live: Option<&LiveVariant>,
) -> Option<UpstreamChoice> {
    match asked {
        RequestedRevision::Number(wanted) => Some(numbered(*wanted, shape, upstream, live)),
        RequestedRevision::Branch(name) => {
            let seen = upstream.iter().find(|one| one.workspace == *name);
            let by_name = shape.number && shape.workspace;
            Some(UpstreamChoice {
                revision: (!shape.number).then(|| json!(name)),
                workspace: by_name.then(|| name.clone()),
                number: seen.and_then(|one| one.number).filter(|number| *number > 0),
                text: name.clone(),
            })
        }
        RequestedRevision::Latest => {
            let latest = newest(upstream).and_then(|latest| latest.number);
            latest.or_else(|| live?.number()).map(|number| numbered(number, shape, upstream, live))
        }
    }
}

fn numbered(
    wanted: u64,
    shape: UpstreamShape,
    upstream: &[&Revision],
    live: Option<&LiveVariant>,
) -> UpstreamChoice {
    let seen = upstream.iter().find(|one| one.number == Some(wanted) && one.is_published());
    let seen = seen.map(|one| one.workspace.clone()).filter(|name| !name.is_empty());
    let kept = live.filter(|live| live.number() == Some(wanted)).and_then(LiveVariant::workspace);
    // Without a name the newest versions would take a branch instead: then one that is not there is better.
    let guessed = (!upstream.is_empty()).then(|| format!("v{wanted}"));
    let text = format!("v{wanted}");
    UpstreamChoice {
        revision: Some(if shape.number { json!(wanted) } else { json!(text) }),
        workspace: seen.or(kept).or(guessed).filter(|_| shape.number && shape.workspace),
        number: Some(wanted),
        text: if shape.number { wanted.to_string() } else { text },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(number: u64, workspace: &str) -> Revision {
        Revision {
            name: format!("catalog.web.{workspace}"),
            workspace: workspace.to_owned(),
            number: Some(number),
            text: number.to_string(),
            lifecycle: "Published".to_owned(),
            ..Revision::default()
        }
    }

    fn schema(revision: &str, workspace: bool) -> UpstreamShape {
        let mut fields = json!({"repo": {}, "revision": {"type": revision}});
        if workspace {
            fields["workspaceName"] = json!({"type": "string"});
        }
        let schema = json!({"properties": {"spec": {"properties": {"upstream": {"properties": fields}}}}});
        let version = json!({"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}});
        UpstreamShape::of(&json!({"spec": {"versions": [{"name": "v0"}, version]}}), "v1alpha1")
    }

    fn asks(asked: &str, shape: UpstreamShape, upstream: &[&Revision]) -> Value {
        Value::Object(
            choose(&RequestedRevision::parse(asked), shape, upstream, None).expect("a choice").fields(),
        )
    }

    #[test]
    fn p23_a_revision_is_a_text_or_a_number_as_the_schema_says() {
        let (text, number) = (schema("string", false), schema("integer", true));
        for written in ["v1", "1"] {
            assert_eq!(asks(written, text, &[]), json!({"revision": "v1"}));
            assert_eq!(asks(written, number, &[]), json!({"revision": 1}));
        }
        assert_eq!(asks("main", text, &[]), json!({"revision": "main"}));
        assert_eq!(asks("main", number, &[]), json!({"workspaceName": "main"}));
        assert_eq!(asks("v1", schema("integer", false), &[&published(1, "first")]), json!({"revision": 1}));
    }

    #[test]
    fn p23_a_number_comes_with_the_workspace_that_newer_versions_go_by() {
        let (first, second) = (published(1, "first"), published(2, "second"));
        let number = schema("integer", true);
        assert_eq!(asks("1", number, &[&first, &second]), json!({"revision": 1, "workspaceName": "first"}));
        let unknown = json!({"revision": 3, "workspaceName": "v3"});
        assert_eq!(
            asks("3", number, &[&first]),
            unknown,
            "rather one that is not there than the branch main"
        );
    }

    #[test]
    fn the_newest_published_revision_is_followed_and_kept_while_none_is_seen() {
        let (first, second) = (published(9, "nine"), published(10, "ten"));
        let draft = Revision { lifecycle: "Draft".to_owned(), ..published(11, "eleven") };
        let shape = UpstreamShape::default();
        let all = [&second, &draft, &first];
        assert_eq!(asks("latest", shape, &all), json!({"revision": 10, "workspaceName": "ten"}));
        assert_eq!(choose(&RequestedRevision::Latest, shape, &[&draft], None), None);
        let live = LiveVariant { upstream: json!({"revision": "v10"}), targets: Vec::new() };
        let kept = choose(&RequestedRevision::Latest, shape, &[], Some(&live)).expect("what it follows");
        assert_eq!(kept.revision, Some(json!(10)), "also across a change of shape");
        let live =
            LiveVariant { upstream: json!({"revision": 10, "workspaceName": "ten"}), targets: Vec::new() };
        for asked in [RequestedRevision::Latest, RequestedRevision::Number(10)] {
            let kept = choose(&asked, shape, &[], Some(&live)).expect("what it follows");
            assert_eq!(kept.workspace.as_deref(), Some("ten"), "nothing is unlearned");
        }
    }

    #[test]
    fn a_revision_is_up_to_date_by_the_rule_of_porch() {
        let made_of = |reference: Option<&str>| Revision {
            upstream: reference.map(str::to_owned),
            ..Revision::default()
        };
        let second = UpstreamChoice { number: Some(2), ..UpstreamChoice::default() };
        assert!(second.is_upstream_of(&made_of(None)), "it does not say");
        assert!(second.is_upstream_of(&made_of(Some("web/v2"))));
        assert!(!second.is_upstream_of(&made_of(Some("web/v1"))));
        assert!(!second.is_upstream_of(&made_of(Some("drafts/web/v2"))));
        assert!(UpstreamChoice::default().is_upstream_of(&made_of(Some("main"))));
        assert!(!UpstreamChoice::default().is_upstream_of(&made_of(Some("web/v1"))));
    }
}
