//! What the kernel knows about this process, for the metrics every Prometheus dashboard expects.

use std::fs;

/// The kernel counts CPU time in hundredths of a second on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// A moment's look at ourselves; what cannot be read is zero.
#[derive(Debug, Default)]
pub(crate) struct ProcessUsage {
    pub(crate) resident_bytes: i64,
    pub(crate) cpu_seconds: f64,
    pub(crate) open_files: i64,
    pub(crate) threads: i64,
}

impl ProcessUsage {
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let open_files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self {
            resident_bytes: field(&status, "VmRSS:").unwrap_or(0) * 1024,
            threads: field(&status, "Threads:").unwrap_or(0),
            cpu_seconds: cpu_ticks(&stat).unwrap_or(0.0) / TICKS_PER_SECOND,
            open_files: i64::try_from(open_files).unwrap_or(0),
        }
    }
}

fn field(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The fields after the program's name, which is in parentheses and may contain anything.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = ProcessUsage::now();
        assert!(usage.resident_bytes > 500_000 && usage.threads >= 1 && usage.open_files >= 3, "{usage:?}");
        assert!(usage.cpu_seconds >= 0.0);
    }

    #[test]
    fn a_strange_program_name_does_not_confuse_the_reading() {
        let stat = "7 (a) b c) S 1 1 1 0 -1 0 0 0 0 0 120 30 0 0 20 0 1 0 5 0 0";
        assert_eq!(cpu_ticks(stat), Some(150.0));
        assert_eq!(cpu_ticks("nonsense"), None);
    }
}
