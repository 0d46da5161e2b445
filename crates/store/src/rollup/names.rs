//! Names: files of hours on the host, objects in the store.

use super::RollupHost;

/// The version of the layout, the first folder of every object.
const VERSION: &str = "v1";
const JSON: &str = ".json";
/// The end of the name of an hour that is in the object store.
const SENT: &str = ".sent.json";
/// Digits of a boot's id in a name.
const BOOT: usize = 8;

/// The file of an hour in the folder of a watch.
///
/// An hour has several files if the machine boots in it, or if it comes again after the clock was set back and its
/// first file is already sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HourFile {
    pub hour: u64,
    /// The first digits of the boot's id.
    pub boot: String,
    /// From 1.
    pub number: u32,
    pub is_sent: bool,
}

impl HourFile {
    #[must_use]
    pub fn new(hour: u64, boot: &str) -> HourFile {
        let digits = boot.chars().filter(char::is_ascii_hexdigit);
        HourFile {
            hour,
            boot: digits.take(BOOT).collect::<String>().to_lowercase(),
            number: 1,
            is_sent: false,
        }
    }

    /// Reads a file's name; `None` if it is no hour's.
    #[must_use]
    pub fn parse(name: &str) -> Option<HourFile> {
        let (stem, is_sent) = match name.strip_suffix(SENT) {
            Some(stem) => (stem, true),
            None => (name.strip_suffix(JSON)?, false),
        };
        let mut fields = stem.split('-');
        let hour = fields.next()?.parse().ok()?;
        let boot = fields.next()?;
        let number = fields.next().map_or(Some(1), |of| of.parse().ok())?;
        let file = HourFile {
            is_sent,
            number,
            ..HourFile::new(hour, boot)
        };
        (file.name() == name).then_some(file)
    }

    /// The same file once its hour is in the object store.
    #[must_use]
    pub fn sent(self) -> HourFile {
        HourFile {
            is_sent: true,
            ..self
        }
    }

    /// The part of the name that tells it from other hours.
    fn stem(&self) -> String {
        let HourFile { hour, boot, .. } = self;
        match self.number {
            1 => format!("{hour:010}-{boot}"),
            number => format!("{hour:010}-{boot}-{number}"),
        }
    }

    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", self.stem(), if self.is_sent { SENT } else { JSON })
    }
}

/// The name of an hour's rows, and of its object: unique, and always the same for the same rows. `watch` is the name of
/// the watch within its host.
#[must_use]
pub fn object_name(host: &RollupHost, watch: &str, file: &HourFile) -> String {
    format!("{}-{}-{}", file.stem(), host.id, safe(watch))
}

/// The folder of the objects of one day as the hosts wrote them, below the fleet's URL.
#[must_use]
pub fn raw_folder(cluster: &str, day: &str) -> String {
    folder("raw", cluster, day)
}

/// The folder of the day's compacted objects.
#[must_use]
pub fn days_folder(cluster: &str, day: &str) -> String {
    folder("days", cluster, day)
}

/// The folder of a saved run.
#[must_use]
pub fn run_folder(cluster: &str, day: &str, host_id: &str, run: &str) -> String {
    let (host, run) = (safe(host_id), safe(run));
    format!("{}/host={host}/{run}", folder("runs", cluster, day))
}

/// The object that says which machine has a host's name.
#[must_use]
pub fn host_object(cluster: &str, host: &str) -> String {
    format!(
        "{VERSION}/hosts/cluster={}/{}.json",
        safe(cluster),
        safe(host)
    )
}

fn folder(of: &str, cluster: &str, day: &str) -> String {
    format!("{VERSION}/{of}/cluster={}/day={day}", safe(cluster))
}

const PARTS: &str = "part:";

/// The key of the histogram of the parts of one kind.
#[must_use]
pub fn key_of_kind(kind: &str) -> String {
    format!("{PARTS}{kind}")
}

/// The kind whose parts have this key; `None` for another histogram.
#[must_use]
pub fn kind_of_key(key: &str) -> Option<&str> {
    key.strip_prefix(PARTS)
}

/// The start of an hour, seconds since the epoch.
#[must_use]
pub fn hour_start_s(hour: u64) -> u64 {
    hour.saturating_mul(3600)
}

/// Letters that every store and every engine takes unchanged in a path.
fn safe(text: &str) -> String {
    let kept = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => letter,
        ',' => '+',
        _ => '_',
    };
    text.chars().map(kept).collect()
}
