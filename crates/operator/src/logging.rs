//! Structured logs: lines for people or JSON for machines, on standard error or into a file.

use std::{
    fs::File,
    io::{IsTerminal, stderr},
    sync::Mutex,
};
use tracing_subscriber::{EnvFilter, fmt, fmt::writer::BoxMakeWriter, util::SubscriberInitExt};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Text, with colours on a terminal.
    Text,
}

/// Logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter makes no sense.
    #[error("{filter:?} is no log level or filter: {reason}; try info, or debug,linchpin_cluster=trace")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody was faster.
    #[error("logs are set up already")]
    Twice,
}

/// Sets up logs for the whole process; `filter` is a level or tracing's filter syntax. They go to standard error
/// unless a file is given.
pub fn init(format: LogFormat, filter: &str, file: Option<File>) -> Result<(), LoggingError> {
    let parsed = EnvFilter::try_new(filter)
        .map_err(|error| LoggingError::Filter { filter: filter.to_owned(), reason: error.to_string() })?;
    let colours = file.is_none() && stderr().is_terminal();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Mutex::new(file)),
        None => BoxMakeWriter::new(stderr),
    };
    let lines = fmt().with_env_filter(parsed).with_writer(writer);
    let done = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).finish().try_init(),
        LogFormat::Text => lines.with_ansi(colours).finish().try_init(),
    };
    done.map_err(|_| LoggingError::Twice)
}
