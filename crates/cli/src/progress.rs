//! One line on a terminal while something takes longer than a second; nothing elsewhere.
//!
//! Called around whatever reads a cluster before the answer is printed: the line is gone again when the answer comes.

use std::{
    io::{self, IsTerminal, Write},
    pin::pin,
    time::Duration,
};

/// How long nothing is said.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Waits for something, and says what goes on if that takes long.
pub(crate) async fn shown<F: Future>(what: &str, future: F) -> F::Output {
    if io::stderr().is_terminal() { shown_on(io::stderr(), what, future).await } else { future.await }
}

async fn shown_on<F: Future>(mut terminal: impl Write, what: &str, future: F) -> F::Output {
    let mut future = pin!(future);
    tokio::select! {
        biased;
        done = &mut future => return done,
        () = tokio::time::sleep(UNNOTICED) => {}
    }
    let line = format!("{what} …");
    // A terminal that cannot be written to is no reason to give no answer.
    let _ = write!(terminal, "{line}").and_then(|()| terminal.flush());
    let done = future.await;
    let _ = write!(terminal, "\r{}\r", " ".repeat(line.chars().count())).and_then(|()| terminal.flush());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(takes: Duration) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut terminal = Vec::new();
        let done = runtime.block_on(shown_on(&mut terminal, "looking", async {
            tokio::time::sleep(takes).await;
            7
        }));
        assert_eq!(done, 7);
        String::from_utf8(terminal).unwrap()
    }

    #[test]
    fn what_takes_longer_than_a_second_is_said_and_wiped_out_again() {
        assert_eq!(said(Duration::ZERO), "");
        assert_eq!(said(Duration::from_millis(1100)), format!("looking …\r{}\r", " ".repeat(9)));
    }
}
