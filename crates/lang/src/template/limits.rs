//! How much one template may cost.
//!
//! A template comes from a user and runs inside the operator, so everything it can make grow has a ceiling
//! here: source, nesting, steps, bytes. The numbers are generous for manifests and small for a machine; one
//! rendering at its limits stays far under a second, 64 MiB and a 2 MiB stack.

/// Longest template source, in bytes.
pub const SOURCE_BYTES: usize = 64 * 1024;
/// Deepest nesting of blocks and parentheses in a source.
pub const NESTING: usize = 64;
/// Steps one rendering may take: one per node evaluated, more for costly functions.
pub const STEPS: u64 = 200_000;
/// Longest rendered text, in bytes.
pub const OUTPUT_BYTES: usize = 1024 * 1024;
/// Bytes of values one rendering may build on the way to its output.
pub const INTERMEDIATE_BYTES: usize = 8 * 1024 * 1024;
/// How deep blocks, parentheses and `template` calls may be nested while a template runs.
pub const EVALUATION_DEPTH: usize = 200;
/// How deep `template` calls may be nested.
pub const TEMPLATE_DEPTH: usize = 100;
/// How deep a value may be nested to be printed, compared or encoded.
pub const VALUE_DEPTH: usize = 128;
/// Longest regular expression, in bytes.
pub const REGEX_SOURCE_BYTES: usize = 4 * 1024;
/// Compiled size of one regular expression, in bytes.
pub const REGEX_BYTES: usize = 64 * 1024;
/// Longest text that is read as YAML documents, in bytes.
pub const DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// How many documents one text may hold.
pub const DOCUMENTS: usize = 1_000;
/// How deep one document may be nested.
pub const DOCUMENT_DEPTH: usize = 64;
/// How many nodes all documents of one text may have together.
pub const DOCUMENT_NODES: usize = 200_000;
