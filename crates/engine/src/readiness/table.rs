//! The table: which rule applies to which kind, in words for people and as code.
//!
//! `docs/readiness.md` is made from these rows, and the fixtures must show every case that a row claims, so the
//! table, the page and the rules cannot drift apart. The first row that applies wins.

/// Paths, after those that every rule reads.
macro_rules! reads {
    ($($path:literal),*) => { &["metadata.generation", "metadata.deletionTimestamp" $(, $path)*] };
}

/// Paths, after those that every rule about conditions reads. Not the time stamps: some controllers rewrite them
/// without need.
macro_rules! conditions {
    ($($path:literal),*) => { reads![
        "status.conditions.type",
        "status.conditions.status",
        "status.conditions.reason",
        "status.conditions.message",
        "status.conditions.observedGeneration"
        $(, $path)*
    ] };
}

mod kubernetes;
mod projects;

use linchpin_words::GroupKind;
use serde_json::Value;

pub use self::projects::OURS;

use super::{RelatedQuery, Verdict, generic, subject::JudgedObject};

/// Kinds that a row applies to.
#[derive(Clone, Copy, Debug)]
pub enum Applies {
    /// These kinds of one group.
    Kinds {
        /// The API group; empty for the core group.
        group: &'static str,
        /// The kinds.
        kinds: &'static [&'static str],
    },
    /// Every kind of every group that ends so, less some groups.
    Groups {
        /// How the groups' names end.
        suffix: &'static str,
        /// Groups that end so and are not meant.
        except: &'static [&'static str],
    },
    /// The kinds of ours: only who asks knows which these are.
    Ours,
}

impl Applies {
    fn to(&self, kind: &GroupKind) -> bool {
        match self {
            Self::Kinds { group, kinds } => kinds.contains(&kind.kind.as_str()) && *group == kind.group,
            Self::Groups { suffix, except } => {
                kind.group.ends_with(suffix) && !except.contains(&kind.group.as_str())
            }
            Self::Ours => false,
        }
    }
}

/// One row: a rule in words and as code.
pub struct ReadinessRow {
    /// What people call it; also names its fixtures.
    pub name: &'static str,
    /// The kinds it is for; none for the generic rule.
    pub applies: &'static [Applies],
    /// When it is ready.
    pub ready: &'static str,
    /// When it is in progress; empty if it never is.
    pub in_progress: &'static str,
    /// When it has failed; empty if it cannot say.
    pub failed: &'static str,
    /// Whether the kind reports the generation it has seen, so that an older one counts as in progress.
    pub observes: bool,
    /// Whether objects of the kind run to an end that the rule knows.
    pub(super) ends: bool,
    /// The paths that the rule reads.
    pub reads: &'static [&'static str],
    pub(super) rule: fn(&JudgedObject<'_>) -> Verdict,
    pub(super) needs: fn(&Value) -> Vec<RelatedQuery>,
}

impl ReadinessRow {
    /// Whether this is the rule for kinds without a row.
    pub fn is_generic(&self) -> bool {
        self.applies.is_empty()
    }

    /// Whether the row is for a kind.
    pub fn applies_to(&self, kind: &GroupKind) -> bool {
        self.applies.iter().any(|applies| applies.to(kind))
    }
}

const fn kinds(group: &'static str, kinds: &'static [&'static str]) -> Applies {
    Applies::Kinds { group, kinds }
}

/// What a row says unless it says something else.
const PLAIN: ReadinessRow = ReadinessRow {
    name: "",
    applies: &[],
    ready: "it exists",
    in_progress: "",
    failed: "",
    observes: false,
    ends: false,
    reads: reads![],
    rule: generic::generic,
    needs: generic::no_needs,
};

/// The rule for every kind without a row.
pub static GENERIC: ReadinessRow = ReadinessRow {
    name: "Every other kind",
    applies: &[],
    ready: "the latest generation was seen, and condition `Ready` (else `Available`) is True; \
            or the kind reports neither; or it reports no status at all and its schema promises none",
    in_progress: "`Reconciling` is True; `Ready` or `Available` is not True; the schema promises \
                  `status.conditions` or `status.observedGeneration`, and the status is empty",
    failed: "`Stalled` is True",
    observes: true,
    reads: conditions!["status.observedGeneration", "status.phase"],
    ..PLAIN
};

/// The kinds with a rule of their own.
pub fn table() -> impl Iterator<Item = &'static ReadinessRow> {
    kubernetes::ROWS.iter().chain([&OURS]).chain(projects::ROWS)
}
