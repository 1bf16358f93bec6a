//! The operators of conditions: what the schema of every kind offers, and what the comparison of values understands.

use serde::{Deserialize, Serialize};

/// How a value is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CompareOperator {
    /// The values are the same.
    #[default]
    Eq,
    /// The values differ.
    Ne,
    /// The value found is greater.
    Gt,
    /// The value found is greater or the same.
    Gte,
    /// The value found is smaller.
    Lt,
    /// The value found is smaller or the same.
    Lte,
    /// The value found is one of a list.
    In,
    /// The value found is none of a list.
    NotIn,
    /// Something is there.
    Exists,
    /// Nothing is there.
    Absent,
    /// The value found is a text in which the pattern is found.
    Matches,
}

impl CompareOperator {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Eq,
        Self::Ne,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::In,
        Self::NotIn,
        Self::Exists,
        Self::Absent,
        Self::Matches,
    ];

    /// The operator of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == name)
    }

    /// The word as written in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::In => "in",
            Self::NotIn => "notIn",
            Self::Exists => "exists",
            Self::Absent => "absent",
            Self::Matches => "matches",
        }
    }

    /// Whether something is compared with a value; the others ask only whether it is there.
    pub const fn takes_value(self) -> bool {
        !matches!(self, Self::Exists | Self::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_written_and_read_by_its_word() {
        for operator in CompareOperator::ALL {
            assert_eq!(serde_json::to_value(operator).unwrap(), operator.as_str());
            assert_eq!(CompareOperator::parse(operator.as_str()), Some(operator));
        }
    }
}
