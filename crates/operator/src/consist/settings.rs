//! What an administrator chooses about PodOpsLifecycle.

use std::{str::FromStr, time::Duration};

use serde::Deserialize;

/// Whose engine of PodOpsLifecycle runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Engine {
    /// Somebody else's where there is one, else ours; while that is not known, somebody else's.
    #[default]
    Auto,
    /// Ours.
    Own,
    /// Somebody else's.
    External,
}

impl Engine {
    /// Whether it is ours, given whether there is another.
    pub(super) fn is_own(self, other: Option<bool>) -> bool {
        match self {
            Self::Own => true,
            Self::External => false,
            Self::Auto => other == Some(false),
        }
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "own" => Ok(Self::Own),
            "external" => Ok(Self::External),
            _ => Err(format!("{text:?} is no engine: write auto, own or external")),
        }
    }
}

/// Everything about PodOpsLifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// Whose engine runs.
    pub engine: Engine,
    /// Whether deletions and evictions are refused until a pod is out of traffic.
    pub grace_delete: bool,
    /// Whether new pods get the gate and their entries by webhook.
    pub admission: bool,
    /// How long those who follow endpoints get to notice.
    pub settle: Duration,
    /// How long a drain may take.
    pub drain_timeout: Duration,
    /// How long an operation waits for others to be attached.
    pub attach_patience: Duration,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            engine: Engine::Auto,
            grace_delete: true,
            admission: true,
            settle: Duration::from_secs(3),
            drain_timeout: Duration::from_mins(5),
            attach_patience: Duration::from_mins(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_somebody_elses_while_that_is_not_known() {
        assert!(!Engine::Auto.is_own(None) && !Engine::Auto.is_own(Some(true)));
        assert!(Engine::Auto.is_own(Some(false)));
        assert!(Engine::Own.is_own(Some(true)) && !Engine::External.is_own(Some(false)));
        assert!("both".parse::<Engine>().is_err());
    }
}
