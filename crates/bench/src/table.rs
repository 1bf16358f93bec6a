//! The result: one row per figure, as a Markdown table.

use std::{fmt, time::Duration};

/// Rows in the order they were measured.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<[String; 5]>,
    /// Figures with a goal that is a ratio: how many times the goal they are.
    exceeded: Vec<(String, f64)>,
}

impl Table {
    /// A time against its floor; the goal is a ratio.
    pub(crate) fn ratio(&mut self, figure: &str, floor: Duration, ours: Duration, goal: f64) {
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        self.exceeded.push((figure.to_owned(), ratio / goal));
        self.row(figure, &time(floor), &time(ours), &format!("{ratio:.2} ×"), &format!("≤ {goal} ×"));
    }

    /// The hops of both sides: the middle one, and the slowest but for one in a hundred.
    pub(crate) fn hops(&mut self, figure: &str, floor: &mut [Duration], ours: &mut [Duration]) {
        for hundredths in [50, 99] {
            let (floor, ours) = (percentile(floor, hundredths), percentile(ours, hundredths));
            self.ratio(&format!("{figure}, p{hundredths}"), floor, ours, 1.5);
        }
    }

    /// A time beside another one, without a goal.
    pub(crate) fn comparison(&mut self, figure: &str, one: Duration, other: Duration) {
        let ratio = other.as_secs_f64() / one.as_secs_f64();
        self.row(figure, &time(one), &time(other), &format!("{ratio:.2} ×"), "–");
    }

    /// A figure without a floor.
    pub(crate) fn plain(&mut self, figure: &str, ours: &str, goal: &str) {
        self.row(figure, "–", ours, "–", goal);
    }

    /// The processor time that the operator used for each of so many things.
    pub(crate) fn processor_time(&mut self, figure: &str, used: Duration, count: usize) {
        let each = used / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        self.plain(&format!("processor time of the operator, {figure}"), &time(each), "small");
    }

    /// The figures that exceed their goals by more than this factor.
    pub(crate) fn missed(&self, factor: f64) -> Vec<&str> {
        let missed = self.exceeded.iter().filter(|(_, times)| *times > factor);
        missed.map(|(figure, _)| figure.as_str()).collect()
    }

    fn row(&mut self, figure: &str, floor: &str, ours: &str, ratio: &str, goal: &str) {
        crate::say(&format!("  {figure}: floor {floor}, linchpin {ours}, {ratio} (goal {goal})"));
        self.rows.push([figure, floor, ours, ratio, goal].map(str::to_owned));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "| figure | floor | linchpin | ratio | goal |\n|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|cells| writeln!(formatter, "| {} |", cells.join(" | ")))
    }
}

/// A time as people write it.
pub(crate) fn time(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

/// The value that so many hundredths of all values do not exceed.
pub(crate) fn percentile(times: &mut [Duration], hundredths: usize) -> Duration {
    times.sort_unstable();
    let rank = (times.len() * hundredths).div_ceil(100).saturating_sub(1);
    times.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_missed_by_more_than_the_factor_that_is_allowed() {
        let mut table = Table::default();
        let [one, two, four] = [1, 2, 4].map(Duration::from_secs);
        table.ratio("within", one, two, 2.0);
        table.ratio("twice the goal", one, four, 2.0);
        table.comparison("no goal", one, four);
        assert_eq!(table.missed(1.5), ["twice the goal"]);
        assert_eq!(table.missed(2.0), [] as [&str; 0]);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 50), Duration::from_millis(50));
        assert_eq!(percentile(&mut times, 99), Duration::from_millis(99));
        assert_eq!(percentile(&mut times[..1], 99), Duration::from_millis(1));
    }
}
