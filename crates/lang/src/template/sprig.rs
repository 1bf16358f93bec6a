//! The part of sprig that manifests use, plus Helm's `required`, `toYaml` and `fromYaml`.
//!
//! Results are sprig's, with these exceptions, all of which make a mistake visible that sprig hides: `b64dec`,
//! `regexMatch` and `fromYaml` fail on bad input instead of returning the error's text, false or a map with a key
//! `Error`; `date` refuses what is no time instead of taking the current one; `set` refuses to change the data;
//! `keys` and `values` are in key order; a result that would not be UTF-8 is an error. `slice` is Go's own, not
//! sprig's. Zones other than UTC are refused.

pub(crate) mod dates;
pub(crate) mod defaults;
pub(crate) mod dicts;
pub(crate) mod encoding;
pub(crate) mod lists;
pub(crate) mod numbers;
pub(crate) mod patterns;
pub(crate) mod strings;

use super::functions::Function;

/// All tables of functions.
pub(crate) const TABLES: &[&[Function]] = &[
    strings::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    lists::FUNCTIONS,
    encoding::FUNCTIONS,
    numbers::FUNCTIONS,
    patterns::FUNCTIONS,
    dates::FUNCTIONS,
];
