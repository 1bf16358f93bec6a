//! What is read of one object: by whom, and since when more than before.
//!
//! Each reader brings its own [`ReadSet`]; an object is projected to what all of its readers read together, and to
//! nothing that only readers of other objects read. The revision says which readers a projection is good for. Made by
//! the hub (one per name) and used by the follower for every object that arrives.

use linchpin_engine::contract::{Question, ReadSet, Want};
use linchpin_words::{Few, keys};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Whether we created an object is asked before every write to it: always kept, and small.
static ALWAYS: LazyLock<ReadSet> = LazyLock::new(|| {
    let mut reads = ReadSet::nothing();
    reads.add(["metadata", "annotations", keys::CREATED_BY].map(str::to_owned).to_vec());
    reads
});

/// Who reads one object, and what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interest {
    /// Higher than before whenever more is read than before.
    pub(crate) revision: u64,
    /// Who reads.
    pub(crate) wants: Few<Want>,
}

impl Interest {
    /// Whether a question reads more than what is read already.
    pub(crate) fn grows_with(&self, want: &Want) -> bool {
        let mut known = ALWAYS.clone();
        for reads in self.reads() {
            known.merge(reads);
        }
        let mut union = known.clone();
        if let Some(reads) = reads_of(want) {
            union.merge(reads);
        }
        union != known
    }

    /// The part of an object that is read.
    pub(crate) fn project(&self, object: &Value) -> Value {
        let mut kept = Value::Object(Map::new());
        ALWAYS.project_onto(object, &mut kept);
        for reads in self.reads() {
            reads.project_onto(object, &mut kept);
        }
        kept
    }

    /// Whether metadata is all that is read, so that no more need be sent.
    pub(crate) fn is_metadata(&self) -> bool {
        self.wants.iter().all(reads_metadata)
    }

    fn reads(&self) -> impl Iterator<Item = &ReadSet> {
        self.wants.iter().filter_map(reads_of)
    }
}

/// Whether a question reads nothing but metadata.
pub(crate) fn reads_metadata(want: &Want) -> bool {
    let known = |name: &String| {
        ["metadata", "kind", "apiVersion"].iter().any(|field| name.eq_ignore_ascii_case(field))
    };
    reads_of(want)
        .is_none_or(|reads| !reads.is_whole() && reads.paths().all(|path| path.first().is_some_and(known)))
}

fn reads_of(want: &Want) -> Option<&ReadSet> {
    match want.question() {
        Question::Objects { reads, .. } => Some(reads),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use linchpin_engine::contract::Via;
    use linchpin_words::Gvk;
    use serde_json::json;

    pub(in crate::watch) fn want(reads: ReadSet) -> Want {
        let kind = Gvk::new("", "v1", "ConfigMap");
        Want::object(Via::service_account("shop", "builder"), kind, Some("shop".into()), "a", reads)
    }

    pub(in crate::watch) fn interest(reads: impl IntoIterator<Item = ReadSet>) -> Interest {
        Interest { revision: 1, wants: reads.into_iter().map(want).collect() }
    }

    #[test]
    fn metadata_is_asked_for_alone_where_nothing_else_is_read() {
        assert!(interest([]).is_metadata());
        assert!(interest([ReadSet::nothing(), ReadSet::held_by("us")]).is_metadata());
        assert!(interest([ReadSet::dotted(["metadata.labels", "kind"])]).is_metadata());
        assert!(
            !interest([ReadSet::nothing(), ReadSet::dotted(["metadata.labels", "status.phase"])])
                .is_metadata()
        );
        assert!(!interest([ReadSet::whole()]).is_metadata());
    }

    #[test]
    fn only_what_is_not_read_yet_is_more() {
        let both = interest([ReadSet::dotted(["data.x"]), ReadSet::dotted(["data.y"])]);
        assert!(!both.grows_with(&want(ReadSet::nothing())));
        assert!(!both.grows_with(&want(ReadSet::dotted(["data.y", "data.x"]))), "together they read both");
        assert!(both.grows_with(&want(ReadSet::dotted(["data.z"]))));
        assert!(both.grows_with(&want(ReadSet::held_by("us"))));
    }

    #[test]
    fn all_readers_find_what_they_read_and_who_created_it() {
        let both = interest([ReadSet::dotted(["data.x"]), ReadSet::dotted(["data.y"])]);
        let annotations = json!({keys::CREATED_BY: "me", "other": "1"});
        let object = json!({"metadata": {"annotations": annotations}, "data": {"x": 1, "y": 2, "z": 3}});
        assert_eq!(
            both.project(&object),
            json!({"metadata": {"annotations": {keys::CREATED_BY: "me"}}, "data": {"x": 1, "y": 2}})
        );
    }
}
