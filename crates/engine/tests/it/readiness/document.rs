//! `docs/readiness.md` shows the table of the code. `LINCHPIN_UPDATE=1` writes it anew.

use std::{env, fmt::Write as _, fs, path::Path};

use linchpin_engine::readiness::{Applies, ReadinessRow};

use super::fixtures::rows;

const START: &str = "<!-- The table is made from the code. -->\n";
const END: &str = "<!-- End of the table. -->\n";

#[test]
fn the_published_table_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/readiness.md");
    let page = fs::read_to_string(&path).expect("docs/readiness.md");
    let (before, rest) = page.split_once(START).expect("the start of the table");
    let (shown, after) = rest.split_once(END).expect("the end of the table");
    let made = markdown();
    if env::var_os("LINCHPIN_UPDATE").is_some() {
        fs::write(&path, format!("{before}{START}{made}{END}{after}")).expect("docs/readiness.md is written");
    } else {
        assert!(shown == made, "docs/readiness.md is out of date: run the tests once with LINCHPIN_UPDATE=1");
    }
}

fn markdown() -> String {
    let mut page =
        String::from("\n| Kind | Ready when | In progress while | Failed when |\n|---|---|---|---|\n");
    for row in rows() {
        let older = if row.observes { "the latest generation has not been seen; " } else { "" };
        let in_progress = format!("{older}{}", row.in_progress);
        let (in_progress, failed) = (or_dash(in_progress.trim_end_matches("; ")), or_dash(row.failed));
        writeln!(page, "| {} | {} | {in_progress} | {failed} |", kinds(row), row.ready).expect("a string");
    }
    page.push('\n');
    page
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn kinds(row: &ReadinessRow) -> String {
    let cells = row.applies.iter().map(|applies| match applies {
        Applies::Kinds { group: "", kinds } if **kinds == [row.name] => String::new(),
        Applies::Kinds { group, kinds } if **kinds == [row.name] => format!(" `{group}`"),
        Applies::Kinds { group: "", kinds } => format!("<br>{}", kinds.join(", ")),
        Applies::Kinds { group, kinds } => format!("<br>{} `{group}`", kinds.join(", ")),
        Applies::Groups { suffix, except: [] } => format!("<br>every kind of `*{suffix}`"),
        Applies::Groups { suffix, except } => {
            format!("<br>every kind of `*{suffix}` but `{}`", except.join("`, `"))
        }
        Applies::Ours => "<br>those whose objects wait for others".to_owned(),
    });
    format!("**{}**{}", row.name, cells.collect::<String>())
}
