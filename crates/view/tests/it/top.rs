//! The live screen over the rows of a known run.

use crate::common::{Scenario, busy};
use jitterscope_model::{Row, RunFacts};
use jitterscope_recording::watch::{Live, LiveView};
use jitterscope_view::top::{Key, TopFacts, TopState, Wish, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The rows as a watch takes them.
fn live(scenario: &Scenario) -> LiveView {
    let live = Live::default();
    let mut sink = live.sink();
    sink.begin(&RunFacts::of(&scenario.manifest)).unwrap();
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        sink.rows(&[Row::Stall(stall, Some(attribution))]).unwrap();
    }
    let mut view = live.look();
    // The second is over.
    view.second += 1;
    view
}

fn facts(scenario: &Scenario) -> TopFacts {
    TopFacts {
        cpus: scenario.manifest.probe.cpus.clone(),
        probe: scenario.manifest.probe.kind.clone(),
        own_share: Some(0.0123),
        own_memory: 41 << 20,
        lost: Some(0),
        ..TopFacts::default()
    }
}

struct Shown {
    live: LiveView,
    facts: TopFacts,
    state: TopState,
    terminal: Terminal<TestBackend>,
}

impl Shown {
    fn of(scenario: &Scenario, width: u16, height: u16) -> Shown {
        Shown {
            live: live(scenario),
            facts: facts(scenario),
            state: TopState::default(),
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
        }
    }

    fn press(&mut self, keys: &[Key]) -> Option<Wish> {
        let mut wish = None;
        for key in keys {
            wish = self.state.key(*key, &self.live);
        }
        wish
    }

    fn screen(&mut self) -> String {
        let (live, facts, state) = (&self.live, &self.facts, &mut self.state);
        self.terminal
            .draw(|frame| draw(frame, live, facts, state))
            .unwrap();
        self.terminal.backend().to_string()
    }
}

#[test]
fn culprits_stalls_and_details_fit_the_smallest_terminal() {
    let mut shown = Shown::of(&busy(&[3]), 80, 24);
    insta::assert_snapshot!("top_culprits", shown.screen());
    shown.press(&[Key::Down, Key::Enter]);
    insta::assert_snapshot!("top_culprit", shown.screen());
    shown.press(&[Key::Escape, Key::Tab]);
    insta::assert_snapshot!("top_stalls", shown.screen());
    shown.press(&[Key::Enter]);
    insta::assert_snapshot!("top_stall", shown.screen());
    shown.press(&[Key::Char('?')]);
    insta::assert_snapshot!("top_help", shown.screen());
}

#[test]
fn a_filter_leaves_only_names_with_its_text() {
    let mut shown = Shown::of(&busy(&[3]), 100, 30);
    let all = shown.screen();
    let first = all
        .lines()
        .find(|line| line.contains(" thread ") || line.contains("\"thread "))
        .unwrap();
    let kind = first
        .trim_start_matches('"')
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    shown.press(&[Key::Char('/')]);
    for c in kind.to_uppercase().chars() {
        shown.press(&[Key::Char(c)]);
    }
    shown.press(&[Key::Enter]);
    let filtered = shown.screen();
    assert!(filtered.contains(&kind), "{filtered}");
    assert!(
        filtered.len() <= all.len() && !filtered.contains("irq "),
        "{filtered}"
    );
    shown.press(&[Key::Char('/'), Key::Char('#'), Key::Enter]);
    assert!(shown.screen().contains("nothing matches the filter"));
    shown.press(&[Key::Escape]);
    assert!(shown.screen().contains(&kind));
}

#[test]
fn a_pause_keeps_the_screen_while_the_measurement_goes_on() {
    let mut shown = Shown::of(&busy(&[3]), 80, 24);
    shown.press(&[Key::Char('p')]);
    let later = LiveView {
        second: 900,
        ..LiveView::default()
    };
    let kept = shown.state.shown(later.clone());
    assert_eq!(kept.second, shown.live.second);
    assert!(shown.screen().contains("PAUSED"));
    shown.press(&[Key::Char('p')]);
    assert_eq!(shown.state.shown(later).second, 900);
}

#[test]
fn keys_ask_for_what_the_screen_cannot_do() {
    let mut shown = Shown::of(&busy(&[3]), 80, 24);
    assert_eq!(shown.press(&[Key::Char('q')]), Some(Wish::Quit));
    assert_eq!(shown.press(&[Key::Char('w')]), Some(Wish::Save));
    // The key for time is that of the timeline in a stall.
    let wish = shown.press(&[Key::Tab, Key::Enter, Key::Char('t')]);
    let Some(Wish::Timeline(stall)) = wish else {
        panic!("{wish:?}");
    };
    assert_eq!(*stall, shown.live.stalls[0]);
    shown
        .state
        .show_timeline(&stall, "line one\nline \u{1b}[31mtwo".into());
    let screen = shown.screen();
    assert!(
        screen.contains("line one") && !screen.contains('\u{1b}'),
        "{screen}"
    );
    // Another stall is open when an answer comes late.
    shown.press(&[Key::Escape, Key::Down, Key::Down, Key::Enter]);
    shown.state.show_timeline(&stall, "late".into());
    assert!(!shown.screen().contains("late"));
}

#[test]
fn no_size_and_no_emptiness_breaks_the_screen() {
    for (width, height) in [(1, 1), (59, 24), (60, 12), (80, 24), (300, 100)] {
        let mut shown = Shown::of(&busy(&[3]), width, height);
        for keys in [
            &[][..],
            &[Key::Down; 200],
            &[Key::Enter],
            &[Key::PageDown; 50],
        ] {
            shown.press(keys);
            shown.screen();
        }
        shown.live = LiveView::default();
        shown.state = TopState::default();
        let screen = shown.screen();
        assert!(width < 60 || screen.contains("no stall yet"), "{screen}");
        shown.press(&[Key::Enter, Key::Tab, Key::Enter, Key::Down]);
        shown.screen();
    }
}
