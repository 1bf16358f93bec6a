//! Inputs from a corpus: input number n of a seed is a function of both and nothing else.

use std::path::Path;

use crate::targets::Target;

/// The longest input: beyond every bound on texts.
const MAX_INPUT: usize = 128 << 10;
/// Characters that break things elsewhere.
const NASTY: [char; 16] = [
    '\0',
    '\u{1}',
    '\n',
    '\r',
    '\t',
    '\u{7f}',
    '\u{85}',
    'é',
    'ß',
    'İ',
    '١',
    '\u{200d}',
    '\u{2028}',
    '\u{feff}',
    '\u{10ffff}',
    '𝒳',
];
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "65536",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "00",
    "0.1",
];

/// The texts to begin with.
pub(crate) struct Corpus {
    texts: Vec<String>,
    words: &'static [&'static str],
}

impl Corpus {
    /// Reads the committed texts of a target; in a file they are separated by lines of `%%`.
    pub(crate) fn read(target: &Target) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let folder = root.join("fuzz").join(target.name);
        let unreadable =
            |error: std::io::Error| format!("cannot read the corpus of {}: {error}", target.name);
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .map_err(unreadable)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        files.sort();
        let mut texts = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(file).map_err(unreadable)?;
            texts.extend(text.trim_end_matches('\n').split("\n%%\n").map(str::to_owned));
        }
        if target.name == "template" {
            let golden =
                std::fs::read_to_string(root.join("template").join("cases.json")).map_err(unreadable)?;
            texts.extend(golden_templates(&golden));
        }
        if texts.is_empty() {
            Err(format!("the corpus of {} is empty", target.name))
        } else {
            Ok(Corpus { texts, words: target.words })
        }
    }

    /// Input number `number` of a seed: first the corpus as it is, then mutations of it.
    pub(crate) fn input(&self, seed: u64, number: u64) -> String {
        if let Some(text) = usize::try_from(number).ok().and_then(|number| self.texts.get(number)) {
            return text.clone();
        }
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let mut text: Vec<char> = self.any(&mut chance).chars().collect();
        for _ in 0..=chance.below(6) {
            self.mutate(&mut text, &mut chance);
        }
        let mut input: String = text.into_iter().collect();
        while input.len() > MAX_INPUT {
            input.pop();
        }
        input
    }

    fn any(&self, chance: &mut Chance) -> &str {
        &self.texts[chance.below(self.texts.len())]
    }

    fn mutate(&self, text: &mut Vec<char>, chance: &mut Chance) {
        let at = chance.below(text.len() + 1);
        let end = (at + 1 + chance.below(12)).min(text.len());
        let word: Vec<char> = self.words[chance.below(self.words.len())].chars().collect();
        match chance.below(11) {
            0 => drop(text.drain(at..end)),
            1 => text.truncate(at),
            2..=4 => drop(text.splice(at..at, word)),
            5 => drop(text.splice(at..end, word)),
            6 => text.insert(at, NASTY[chance.below(NASTY.len())]),
            7 => drop(text.splice(at..end, NUMBERS[chance.below(NUMBERS.len())].chars())),
            8 => {
                let other: Vec<char> = self.any(chance).chars().collect();
                let from = chance.below(other.len() + 1);
                text.splice(at.., other[from..].iter().copied());
            }
            9 => {
                // A part, again and again: what grows with repetition shows here.
                let part: Vec<char> = text[at..end].to_vec();
                let times = 1 << chance.below(12);
                text.splice(at..at, part.iter().copied().cycle().take((part.len() * times).min(MAX_INPUT)));
            }
            _ => {
                let (open, close) =
                    [('(', ')'), ('[', ']'), ('{', '}'), ('"', '"'), ('!', ' ')][chance.below(5)];
                let times = 1 << chance.below(8);
                text.splice(end..end, std::iter::repeat_n(close, times));
                text.splice(at..at, std::iter::repeat_n(open, times));
            }
        }
    }
}

/// The sources of the golden cases.
fn golden_templates(cases: &str) -> Vec<String> {
    let cases: serde_json::Value = serde_json::from_str(cases).unwrap_or_default();
    let list = cases.get("cases").unwrap_or(&cases).as_array().cloned().unwrap_or_default();
    list.iter()
        .filter_map(|case| Some(case.get("template").or(case.get("source"))?.as_str()?.to_owned()))
        .collect()
}

/// A small generator of chance (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % limit.max(1) as u64).unwrap_or(0)
    }
}
