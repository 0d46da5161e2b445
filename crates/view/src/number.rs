//! Numbers for people.

use jitterscope_model::Nanos;
pub(crate) use jitterscope_model::thousands;

/// `1,234,567`; from ten millions on `12.3 M`.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..=9_999_999 => thousands(n),
        10_000_000..=999_949_999 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.1} G", n as f64 / 1e9),
    }
}

/// A share with up to three significant digits: `41.2 %`, `0.84 %`, `0.00012 %`.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p == 0.0 {
        return "0 %".into();
    }
    let digits = match p {
        p if p >= 9.995 => 1,
        p if p >= 0.0995 => 2,
        p if p >= 0.00995 => 3,
        p if p >= 0.000_995 => 4,
        p if p >= 0.000_05 => 5,
        _ => return "<0.0001 %".into(),
    };
    format!("{p:.digits$} %")
}

/// A share in a table: one decimal.
pub(crate) fn percent_cell(share: f64) -> String {
    let p = share * 100.0;
    if p > 0.0 && p < 0.05 {
        "<0.1 %".into()
    } else {
        format!("{p:.1} %")
    }
}

/// A share that should be 100 %: rounded down, so that `100.0000 %` means all.
pub(crate) fn percent_down(share: f64, digits: usize) -> String {
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(0));
    // A millionth of the last digit compensates for binary fractions.
    let p = (share * 100.0 * scale + 1e-6).floor() / scale;
    format!("{p:.digits$} %")
}

/// A rate: `547`, `3.2`, `0.013`; from ten thousand on with separators or as millions.
pub(crate) fn rate(per_sec: f64) -> String {
    match per_sec {
        0.0 => "0".into(),
        r if r < 0.0095 => format!("{r:.4}"),
        r if r < 0.95 => format!("{r:.2}"),
        r if r < 9.95 => format!("{r:.1}"),
        r if r < 1e6 => thousands(r.round() as u64),
        r => format!("{:.1} M", r / 1e6),
    }
}

/// A moment within a run: `3.412 s`, `2h05m07s`.
pub(crate) fn moment(since: Nanos) -> String {
    let seconds = since.0 / 1_000_000_000;
    if seconds < 1000 {
        return format!("{seconds}.{:03} s", since.0 / 1_000_000 % 1000);
    }
    clock(seconds)
}

fn clock(seconds: u64) -> String {
    match seconds {
        0..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!(
            "{}h{:02}m{:02}s",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

/// A long time: `10.0 s`, `1h00m00s`.
pub(crate) fn span(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    if seconds < 600 {
        time.to_string()
    } else {
        clock(seconds)
    }
}

/// `12.3 MiB`.
pub fn bytes(n: u64) -> String {
    let n = n as f64;
    match n {
        _ if n < 1024.0 => format!("{n} B"),
        _ if n < 1024.0 * 1024.0 => format!("{:.1} KiB", n / 1024.0),
        _ if n < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", n / (1024.0 * 1024.0)),
        _ => format!("{:.1} GiB", n / (1024.0 * 1024.0 * 1024.0)),
    }
}

/// A time since the epoch in UTC: `2026-11-20 22:19:49`.
pub fn utc(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{seconds} s"),
    }
}

/// `once`, `12 times`.
pub(crate) fn times(n: u64) -> String {
    if n == 1 {
        "once".into()
    } else {
        format!("{} times", count(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(12_345_678), "12.3 M");
        assert_eq!(
            [0.412, 0.0084, 0.000_001_2, 1e-9, 0.0, 1.0, 0.000_5].map(percent),
            [
                "41.2 %",
                "0.84 %",
                "0.00012 %",
                "<0.0001 %",
                "0 %",
                "100.0 %",
                "0.050 %"
            ]
        );
        assert_eq!(
            [1.0, 0.999_999_9, 0.99].map(|s| percent_down(s, 4)),
            ["100.0000 %", "99.9999 %", "99.0000 %"]
        );
        assert_eq!(
            [0.0, 0.000_1, 0.5].map(percent_cell),
            ["0.0 %", "<0.1 %", "50.0 %"]
        );
        assert_eq!(moment(Nanos(3_412_345_678)), "3.412 s");
        assert_eq!(moment(Nanos(7_507_000_000_000)), "2h05m07s");
        assert_eq!(moment(Nanos(1_007_000_000_000)), "16m47s");
        assert_eq!(bytes(12_900_000), "12.3 MiB");
        assert_eq!(
            [0.0, 0.004, 3.21, 547.4, 107_100_000.0].map(rate),
            ["0", "0.0040", "3.2", "547", "107.1 M"]
        );
        assert_eq!(utc(1_795_213_189_826_000_000), "2026-11-20 22:19:49");
    }
}
