//! `per_cpu/cpuN/stats`: the ring buffer's own counts.

/// The counts of one CPU's ring buffer since tracing began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStats {
    /// Events in the buffer now.
    pub entries: u64,
    /// Events overwritten before they were read; pages count these as well.
    pub overrun: u64,
    /// Events lost because a nested one could not be committed.
    pub commit_overrun: u64,
    pub dropped: u64,
    pub read: u64,
}

impl BufferStats {
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.overrun
            .saturating_add(self.commit_overrun)
            .saturating_add(self.dropped)
    }

    /// Parses the file's text; a missing line counts as zero.
    #[must_use]
    pub fn parse(text: &str) -> BufferStats {
        let mut stats = BufferStats::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let Ok(value) = value.trim().parse::<u64>() else {
                continue;
            };
            match name.trim() {
                "entries" => stats.entries = value,
                "overrun" => stats.overrun = value,
                "commit overrun" => stats.commit_overrun = value,
                "dropped events" => stats.dropped = value,
                "read events" => stats.read = value,
                _ => {}
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_read() {
        let text = "entries: 5\noverrun: 12\ncommit overrun: 1\nbytes: 300\noldest event ts:  1707.420081\n\
                    now ts:  1707.42\ndropped events: 2\nread events: 70\n";
        let expected = BufferStats {
            entries: 5,
            overrun: 12,
            commit_overrun: 1,
            dropped: 2,
            read: 70,
        };
        assert_eq!(BufferStats::parse(text), expected);
        assert_eq!(
            BufferStats::parse("overrun: x\n:\n-"),
            BufferStats::default()
        );
    }
}
