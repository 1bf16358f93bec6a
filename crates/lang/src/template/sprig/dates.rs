//! Functions on times. The clock is the caller's, the zone is UTC.

use jiff::{SignedDuration, Timestamp};

use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter, failure};
use crate::template::moment;
use crate::template::store::Store;
use crate::template::value::{Evaluated, Value};

use Parameter::{Any, Moment, Text};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("now", &[], |store, _| Ok(Value::Moment(store.now))),
    Function::new("date", &[Text, Any], |store, a| shown(store, "date", &a[0], &a[1])),
    Function::new("dateInZone", &[Text, Any, Text], |store, a| in_zone(store, "dateInZone", a)),
    Function::new("date_in_zone", &[Text, Any, Text], |store, a| in_zone(store, "date_in_zone", a)),
    Function::new("htmlDate", &[Any], |store, a| {
        shown(store, "htmlDate", &Value::borrowed("2006-01-02"), &a[0])
    }),
    Function::new("dateModify", &[Text, Moment], |_, a| modified("dateModify", a)),
    Function::new("date_modify", &[Text, Moment], |_, a| modified("date_modify", a)),
    Function::new("unixEpoch", &[Moment], |store, a| match &a[0] {
        Value::Moment(moment) => store.text(moment.as_second().to_string()),
        _ => failure("unixEpoch", "wants a time"),
    }),
];

fn time(function: &'static str, value: &Value<'_>) -> Result<Timestamp, Cause> {
    let found = match value {
        Value::Moment(moment) => Some(*moment),
        Value::Int(seconds) | Value::Int64(seconds) => Timestamp::from_second(*seconds).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    match found {
        Some(moment) => Ok(moment),
        None => failure(function, "wants a time: now, seconds since 1970, or text like 2026-01-31T12:00:00Z"),
    }
}

fn shown<'d>(
    store: &mut Store<'d>,
    function: &'static str,
    layout: &Value<'d>,
    value: &Value<'d>,
) -> Evaluated<'d> {
    let moment = time(function, value)?;
    let layout = layout.as_text();
    // No part of a layout grows by more than its own length and a few letters.
    store.charge(layout.len() * 8)?;
    store.text(moment::format(moment, layout))
}

fn in_zone<'d>(store: &mut Store<'d>, function: &'static str, a: &[Value<'d>]) -> Evaluated<'d> {
    if !matches!(a[2].as_text(), "" | "UTC" | "Etc/UTC" | "Local") {
        return failure(function, "the only time zone is UTC");
    }
    shown(store, function, &a[0], &a[1])
}

fn modified<'d>(function: &'static str, a: &[Value<'d>]) -> Evaluated<'d> {
    let Value::Moment(moment) = &a[1] else {
        return failure(function, "wants a time");
    };
    let Some(nanoseconds) = moment::duration(a[0].as_text()) else {
        return failure(function, "wants a duration like 90m or -24h");
    };
    match moment.checked_add(SignedDuration::from_nanos(nanoseconds)) {
        Ok(moment) => Ok(Value::Moment(moment)),
        Err(_) => failure(function, "the result is out of range"),
    }
}
