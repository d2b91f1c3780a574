//! Time of day. It only informs: nothing is ordered by it, and whatever the clock says is taken as it is.

use crate::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 if the clock stands before that.
pub fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `2026-07-28T09:30:00.125Z`
pub fn rfc3339_now() -> String {
    let mut text = Vec::with_capacity(24);
    write_rfc3339(SystemTime::now(), &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// The last moment that has four digits for its year.
pub(crate) const LAST_SECOND: u64 = 253_402_300_799;

pub(crate) fn write_rfc3339(time: SystemTime, out: &mut Vec<u8>) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs().min(LAST_SECOND), since.subsec_millis());
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    digits(out, year, 4);
    out.push(b'-');
    digits(out, month, 2);
    out.push(b'-');
    digits(out, day, 2);
    out.push(b'T');
    digits(out, of_day / 3600, 2);
    out.push(b':');
    digits(out, of_day / 60 % 60, 2);
    out.push(b':');
    digits(out, of_day % 60, 2);
    out.push(b'.');
    digits(out, u64::from(millis), 3);
    out.push(b'Z');
}

fn digits(out: &mut Vec<u8>, number: u64, count: u32) {
    for place in (0..count).rev() {
        out.push(b'0' + (number / 10u64.pow(place) % 10) as u8);
    }
}

/// Year, month and day of a day since 1970. Years are counted from March, so that the leap day is a year's last.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + 719_468; // since the first of March of the year 0
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn text(time: SystemTime) -> String {
        let mut out = Vec::new();
        write_rfc3339(time, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_moments() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_827_696, 7, "2000-02-29T12:34:56.007Z"),
            (1_785_231_000, 125, "2026-07-28T09:30:00.125Z"),
            (4_107_542_399, 999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (LAST_SECOND, 0, "9999-12-31T23:59:59.000Z"),
            (LAST_SECOND + 1, 0, "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(text(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis)), expected);
        }
    }

    #[test]
    fn a_clock_before_1970_is_no_accident() {
        assert_eq!(text(UNIX_EPOCH - Duration::from_secs(5)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for day in 0..146_097 {
            assert_eq!(civil(day), expected);
            let (year, month, of_month) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
            expected = match (of_month == length, month == 12) {
                (false, _) => (year, month, of_month + 1),
                (true, false) => (year, month + 1, 1),
                (true, true) => (year + 1, 1, 1),
            };
        }
    }
}
