//! What our init containers are called.
//!
//! Computed from the set of entries, never from positions: an entry keeps its container's name when others are put
//! before it. The document's own name, `wait-for-<service>`, wherever it is free and short enough.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::BootEntry;
use linchpin_words::{hash::sha256_hex, limits};

use super::{address::target, division::fragment};

const PREFIX: &str = "wait-for-";

/// So much of the first form is kept before a hash.
const KEPT: usize = 54;

/// How many digits of the hash follow.
const DIGITS: usize = 8;

/// A name for each of these entries, which all differ; `taken` are names that a pod's other containers have.
pub(super) fn of(entries: &[&BootEntry], taken: &BTreeSet<&str>) -> Vec<String> {
    let plain: Vec<String> =
        entries.iter().map(|entry| format!("{PREFIX}{}", slug(&target(entry)))).collect();
    let with_port: Vec<String> = plain
        .iter()
        .zip(entries)
        .map(|(plain, entry)| format!("{plain}-{}", entry.port.unwrap_or_default()))
        .collect();
    let mut plains: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &plain {
        *plains.entry(name).or_default() += 1;
    }
    // What has its port behind it must not be called as another one is without.
    let mut all = plains.clone();
    for name in &with_port {
        *all.entry(name).or_default() += 1;
    }
    // Of a target without a letter or digit (`::`, `_`) nothing is left behind the prefix, and no name ends with a dash.
    let fits = |name: &str, among: &BTreeMap<&str, usize>| {
        let is_label = name.len() <= limits::LABEL && name != PREFIX;
        is_label && among.get(name) == Some(&1) && !taken.contains(name)
    };
    let chosen: Vec<String> = entries
        .iter()
        .zip(plain.iter().zip(&with_port))
        .map(|(entry, (plain, with_port))| {
            if fits(plain, &plains) {
                plain.clone()
            } else if fits(with_port, &all) && !taken.contains(plain.as_str()) {
                with_port.clone()
            } else {
                hashed(plain, entry)
            }
        })
        .collect();
    apart(&chosen, &plain, entries)
}

/// Of names that are still equal, because one entry's target is written like another's hash, each gets its hash.
fn apart(chosen: &[String], plain: &[String], entries: &[&BootEntry]) -> Vec<String> {
    let twice = |name: &String| chosen.iter().filter(|other| *other == name).count() > 1;
    let again = chosen.iter().zip(plain.iter().zip(entries));
    again
        .map(|(name, (plain, entry))| if twice(name) { hashed(plain, entry) } else { name.clone() })
        .collect()
}

fn hashed(plain: &str, entry: &BootEntry) -> String {
    let kept = &plain[..plain.len().min(KEPT)];
    let hash = sha256_hex(fragment(entry).to_string().as_bytes());
    format!("{}-{}", kept.trim_end_matches('-'), &hash[..DIGITS])
}

/// The target in the letters that a container's name may have.
fn slug(target: &str) -> String {
    let letters: String = target
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
        .collect();
    letters.trim_matches('-').to_owned()
}
