//! How much one template may cost.
//!
//! A template comes from a user and runs inside the operator, so everything it can make grow has a ceiling: source,
//! nesting, steps, bytes. The numbers and their reasons are in the one table, [`linchpin_words::limits`]; here they
//! have the names that this module's code uses. One rendering at its limits stays far under a second, 64 MiB and a
//! 2 MiB stack.

pub use linchpin_words::limits::{
    DOCUMENT_DEPTH, DOCUMENT_NODES, DOCUMENTS, NESTING, TEMPLATE_CALLS as TEMPLATE_DEPTH,
    TEMPLATE_DEPTH as EVALUATION_DEPTH, TEMPLATE_FIELDS as FIELDS, TEMPLATE_OUTPUT as OUTPUT_BYTES,
    TEMPLATE_PATTERN as REGEX_SOURCE_BYTES, TEMPLATE_PATTERN_COMPILED as REGEX_BYTES,
    TEMPLATE_SOURCE as SOURCE_BYTES, TEMPLATE_STEPS as STEPS, TEMPLATE_VALUES as INTERMEDIATE_BYTES,
    VALUE_DEPTH, YAML_SOURCE as DOCUMENT_BYTES,
};
