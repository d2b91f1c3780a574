//! Rules of manifests, and URLs that code asks for. What is shown of a rule or a URL must read as the same one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use egress::{BareStar, Rule, Rules, Target};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (rule, url) = text.split_once('\n').unwrap_or((text, text));
    let rule = Rule::parse(rule, BareStar::Allowed);
    if let Ok(rule) = &rule {
        let shown = rule.to_string();
        assert_eq!(Rule::parse(&shown, BareStar::Allowed).as_ref(), Ok(rule), "{shown}");
        assert!(rule.covers(rule), "{shown}");
    }
    let Ok(target) = Target::parse(url) else { return };
    let shown = target.to_string();
    assert_eq!(Target::parse(&shown).expect("a URL that was shown").to_string(), shown);
    if let Ok(rule) = rule {
        let rules = Rules::parse([rule.to_string().as_str()], BareStar::Allowed).expect("a rule");
        let _ = rules.find(&target, "GET");
    }
});
