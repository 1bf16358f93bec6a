//! Structured logs: lines for people or JSON for machines, on standard error or into a file.

use std::{
    fs::File,
    io::{IsTerminal, stderr},
    sync::Mutex,
};
use tracing_subscriber::{EnvFilter, fmt, fmt::writer::BoxMakeWriter, util::SubscriberInitExt};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Text for people.
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

/// Targets that log whole bodies, and with them anybody's secrets, when an answer cannot be read: they say nothing below
/// an error, whatever the filter asks for.
const TELLTALES: [&str; 2] = ["kube_client=error", "kube_client::client=error"];

/// The filter, without what must never be logged.
fn quiet(filter: &str) -> Result<EnvFilter, LoggingError> {
    let wrong = |error: &dyn std::error::Error| LoggingError::Filter {
        filter: filter.to_owned(),
        reason: error.to_string(),
    };
    let mut parsed = EnvFilter::try_new(filter).map_err(|error| wrong(&error))?;
    for telltale in TELLTALES {
        parsed = parsed.add_directive(telltale.parse().map_err(|error| wrong(&error))?);
    }
    Ok(parsed)
}

/// Sets up logs for the whole process; `filter` is a level or tracing's filter syntax. They go to standard error
/// unless a file is given.
pub fn init(format: LogFormat, filter: &str, file: Option<File>) -> Result<(), LoggingError> {
    let parsed = quiet(filter)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{self, Write},
        sync::Arc,
    };

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bodies_are_never_logged_whatever_the_filter_says() {
        for filter in
            ["trace", "warn,kube_client=trace", "kube_client::client=trace", "debug,kube_client::client=warn"]
        {
            let lines = Lines::default();
            let writer = lines.clone();
            let logs =
                fmt().with_env_filter(quiet(filter).unwrap()).with_writer(move || writer.clone()).finish();
            tracing::subscriber::with_default(logs, || {
                tracing::warn!(target: "kube_client::client", "{}, {:?}", "hunter2", "trailing characters");
                tracing::trace!(target: "kube_client::client", "Status from hunter2");
                tracing::error!(target: "linchpin_operator", "seen");
            });
            let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert!(!text.contains("hunter2"), "{filter}: {text}");
        }
    }
}
