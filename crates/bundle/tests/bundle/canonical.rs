use crate::support::any_json;
use bundle::{canonical, canonical_digest};
use proptest::prelude::*;
use serde_json::{Value, json};

fn text(json: &str) -> String {
    String::from_utf8(canonical(&serde_json::from_str(json).unwrap())).unwrap()
}

/// RFC 8785, section 3.2.2 to 3.2.4.
#[test]
fn the_example_of_the_rfc() {
    let input = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50,
                  2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let bytes = "7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 \
                 75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a \
                 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 \
                 65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37 \
                 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30 \
                 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d";
    assert_eq!(text(input).into_bytes(), hex::decode(bytes.replace(' ', "")).unwrap());
}

/// RFC 8785, section 3.2.3: by UTF-16 code units.
#[test]
fn the_order_of_the_rfc() {
    let input = r#"{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let order = [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ];
    let text = text(input);
    let places: Vec<_> = order.iter().map(|name| text.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    assert!(text.starts_with("{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\""), "{text}");
}

/// RFC 8785, appendix B.
#[test]
fn the_numbers_of_the_rfc() {
    let numbers: &[(u64, &str)] = &[
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ];
    for (bits, written) in numbers {
        let number = f64::from_bits(*bits);
        assert_eq!(canonical(&json!(number)), written.as_bytes(), "{number}");
        assert_eq!(text(written), *written);
    }
}

#[test]
fn integers_are_doubles() {
    assert_eq!(canonical(&json!(1)), canonical(&json!(1.0)));
    assert_eq!(canonical(&json!(u64::MAX)), b"18446744073709552000");
    assert_eq!(text("9007199254740993"), "9007199254740992");
}

#[test]
fn the_digest_is_that_of_the_bytes() {
    let empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(canonical_digest(&json!({})).to_string(), empty);
}

proptest! {
    #[test]
    fn another_library_says_the_same(value in any_json()) {
        prop_assert_eq!(canonical(&value), serde_json_canonicalizer::to_vec(&value).unwrap());
    }

    #[test]
    fn the_canonical_form_is_its_own(value in any_json()) {
        let once = canonical(&value);
        let read: Value = serde_json::from_slice(&once).unwrap();
        prop_assert_eq!(canonical(&read), once);
    }
}
