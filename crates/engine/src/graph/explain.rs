//! Why something waits, in sentences.
//!
//! The one line that status and `explain` show (`AppBundle shop/web waits for BootDependency shop/web, which waits
//! for Job db/migrate: failed, BackoffLimitExceeded`), and the chain below it, one step a line. Only phrasing: what
//! is said was found by [`Graph::root_causes`](super::Graph::root_causes). Texts that came from users are put on
//! one line, without control characters, and are no longer than a message of ours may be.

use std::fmt::Write as _;

use jiff::Timestamp;

use linchpin_words::{limits, text::NOT_VISIBLE};

use super::cause::{Causes, Chain, ChainEnd, ChainLink, Hop};
use super::node::{Node, Wait};

/// The one-line answer to "why does `node` wait?".
pub fn answer(node: &Node, causes: &Causes) -> String {
    let Some(first) = causes.chains.first() else {
        return format!("{node} waits for nothing");
    };
    one_line(first) + &others(causes)
}

/// The one-line answer to "why has `node` failed?".
pub fn failure(node: &Node, causes: &Causes) -> String {
    let Some(first) = causes.chains.first() else {
        return format!("{node} has failed");
    };
    sentence(first, " has failed because of ") + &others(causes)
}

/// That there are further causes, if there are.
fn others(causes: &Causes) -> String {
    match (causes.chains.len() + causes.more).saturating_sub(1) {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    }
}

/// One chain as one sentence.
pub fn one_line(chain: &Chain) -> String {
    sentence(chain, " waits for ")
}

/// One chain as one sentence that begins so.
fn sentence(chain: &Chain, first: &str) -> String {
    let mut line = clean(&chain.start.to_string());
    let (head, tail) = chain.halves();
    let count = chain.links.len();
    for (at, link) in head.iter().chain(tail).enumerate() {
        if chain.skipped > 0 && at == head.len() {
            let _ = write!(line, ", … ({} more) …", chain.skipped);
        }
        match &link.hop {
            Hop::WaitsFor(_) if at == 0 => line.push_str(first),
            Hop::WaitsFor(_) => line.push_str(", which waits for "),
            Hop::MadeBy if at == 0 => line.push_str(" is to be made by "),
            Hop::MadeBy => line.push_str(", to be made by "),
        }
        line.push_str(&clean(&link.node.to_string()));
        let ends_in_making = at + 2 == count && chain.links[at + 1].hop == Hop::MadeBy;
        if let Hop::WaitsFor(wait) = &link.hop {
            let why = why(wait);
            if !why.is_empty() && ends_in_making && chain.end == ChainEnd::Leaf {
                let _ = write!(line, " ({why})");
            } else if !why.is_empty()
                && at + 1 == count
                && matches!(chain.end, ChainEnd::Leaf | ChainEnd::Opaque | ChainEnd::Unread)
            {
                let _ = write!(line, ": {why}");
            }
        }
    }
    let waits = if chain.links.is_empty() { " waits for" } else { ", which waits for" };
    match &chain.end {
        ChainEnd::Leaf => {}
        ChainEnd::Cycle(Some(path)) if chain.links.is_empty() => {
            let _ = write!(line, " waits for itself: {}", clean(&path.to_string()));
        }
        ChainEnd::Cycle(Some(path)) => {
            let _ = write!(line, ", which waits for itself: {}", clean(&path.to_string()));
        }
        ChainEnd::Cycle(None) => {
            let _ = write!(line, "{waits} itself: the cycle is {NOT_VISIBLE}");
        }
        ChainEnd::Opaque => {
            let _ = write!(line, " {NOT_VISIBLE}");
        }
        ChainEnd::Unread => line.push_str(" (not visible to you)"),
        ChainEnd::NotVisible => {
            let _ = write!(line, "{waits} {NOT_VISIBLE}");
        }
    }
    line
}

/// The steps of a chain, a line each, without where it starts; with how long it has been so if it is known what time it is.
pub fn steps(chain: &Chain, now: Option<Timestamp>) -> Vec<String> {
    let (head, tail) = chain.halves();
    let mut steps: Vec<String> = head.iter().map(|link| step(link, now)).collect();
    if chain.skipped > 0 {
        steps.push(format!("… {} more …", chain.skipped));
    }
    steps.extend(tail.iter().map(|link| step(link, now)));
    match &chain.end {
        ChainEnd::Leaf => {}
        ChainEnd::Cycle(Some(path)) => steps.push(format!("waits for itself: {}", clean(&path.to_string()))),
        ChainEnd::Cycle(None) => steps.push(format!("waits for itself: the cycle is {NOT_VISIBLE}")),
        ChainEnd::Opaque => steps.push(NOT_VISIBLE.to_owned()),
        ChainEnd::Unread => steps.push("(not visible to you)".to_owned()),
        ChainEnd::NotVisible => steps.push(format!("waits for {NOT_VISIBLE}")),
    }
    steps
}

/// What the steps of a chain lead to, read from the last of them as a status keeps it; none where that may not be shown.
pub fn root(steps: &[String]) -> Option<&str> {
    let last = steps.last()?;
    let cause = last.strip_prefix("waits for ").filter(|cause| !cause.starts_with("itself")).unwrap_or(last);
    (!cause.ends_with(NOT_VISIBLE)).then_some(cause)
}

/// One chain as lines, where it starts and then one step each, with how long it has been so.
pub fn lines(chain: &Chain, now: Option<Timestamp>) -> Vec<String> {
    let mut lines = vec![clean(&chain.start.to_string())];
    for (depth, step) in steps(chain, now).into_iter().enumerate() {
        lines.push(format!("{}└─ {step}", "   ".repeat(depth)));
    }
    lines
}

fn step(link: &ChainLink, now: Option<Timestamp>) -> String {
    match &link.hop {
        Hop::MadeBy => format!("to be made by {}", clean(&link.node.to_string())),
        Hop::WaitsFor(wait) => {
            let mut text = format!("waits for {}", clean(&link.node.to_string()));
            let why = why(wait);
            if !why.is_empty() {
                let _ = write!(text, ": {why}");
            }
            if let Some(age) = wait.since.zip(now).map(|(since, now)| age(since, now)) {
                let _ = write!(text, ", for {age}");
            }
            text
        }
    }
}

/// The words of a wait: its detail, then its reason unless the detail already says it.
pub fn why(wait: &Wait) -> String {
    let (detail, reason) = (plain(&wait.detail), plain(&wait.reason));
    if detail.is_empty() {
        reason
    } else if reason.is_empty() || detail.contains(&reason) {
        detail
    } else {
        format!("{detail}, {reason}")
    }
}

/// A user's text made fit for one line. What a status says is not cut: it is no longer than this.
pub fn plain(text: &str) -> String {
    let clean = clean(text);
    match clean.char_indices().nth(limits::MESSAGE) {
        Some((at, _)) => format!("{}…", clean[..at].trim_end()),
        None => clean,
    }
}

/// A text made fit for one line: white space folded, control and direction characters dropped.
pub fn clean(text: &str) -> String {
    let kept = |character: &char| !turns_direction(*character);
    let text: String = text.chars().filter(kept).map(|it| if it.is_control() { ' ' } else { it }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that make a terminal or a page show text in another order than it is written.
fn turns_direction(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A length of time as kubectl shows ages: `42s`, `3m12s`, `5h`, `12d`. A start in the future is `0s`.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - since.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if days < 2 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () => format!("{days}d"),
    }
}
