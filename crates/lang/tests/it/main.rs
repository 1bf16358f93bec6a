//! The languages, through their public faces.
#![allow(missing_docs)]

mod cel;
mod compare;
mod jsonpath;
