//! Addresses that nobody reaches, in every form that carries them.

use egress::{RANGES, classify};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every IPv6 form that carries an IPv4 address.
fn embeddings(v4: Ipv4Addr) -> Vec<(&'static str, Ipv6Addr)> {
    let [a, b, c, d] = v4.octets().map(u16::from);
    let (high, low) = (a << 8 | b, c << 8 | d);
    let six = Ipv6Addr::new;
    vec![
        ("mapped", six(0, 0, 0, 0, 0, 0xffff, high, low)),
        ("compatible", six(0, 0, 0, 0, 0, 0, high, low)),
        ("translated", six(0, 0, 0, 0, 0xffff, 0, high, low)),
        ("NAT64", six(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
        ("local NAT64 /96", six(0x64, 0xff9b, 1, 0, 0, 0, high, low)),
        ("local NAT64 /48", six(0x64, 0xff9b, 1, high, low >> 8, (low & 0xff) << 8, 0, 0)),
        ("local NAT64 /64", six(0x64, 0xff9b, 1, 7, high >> 8, (high & 0xff) << 8 | low >> 8, (low & 0xff) << 8, 0)),
        ("6to4", six(0x2002, high, low, 0, 0, 0, 0, 1)),
        ("Teredo client", six(0x2001, 0, 0x808, 0x808, 0, 0xffff, !high, !low)),
        ("Teredo server", six(0x2001, 0, high, low, 0, 0xffff, !0x808, !0x808)),
        ("ISATAP", six(0x2a00, 1, 2, 3, 0, 0x5efe, high, low)),
        ("ISATAP, global", six(0x2a00, 1, 2, 3, 0x200, 0x5efe, high, low)),
        ("ISATAP, link-local", six(0xfe80, 0, 0, 0, 0, 0x5efe, high, low)),
    ]
}

/// First and last address of a range.
fn ends(network: IpAddr, prefix: u8) -> (IpAddr, IpAddr) {
    match network {
        IpAddr::V4(first) => {
            let hosts = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            (network, IpAddr::V4(Ipv4Addr::from(u32::from(first) | hosts)))
        }
        IpAddr::V6(first) => {
            let hosts = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            (network, IpAddr::V6(Ipv6Addr::from(u128::from(first) | hosts)))
        }
    }
}

fn forbidden_v4() -> impl Strategy<Value = Ipv4Addr> {
    let ranges: Vec<(u32, u8)> = RANGES
        .iter()
        .filter_map(|range| match range.network {
            IpAddr::V4(v4) => Some((u32::from(v4), range.prefix)),
            IpAddr::V6(_) => None,
        })
        .collect();
    (proptest::sample::select(ranges), any::<u32>()).prop_map(|((network, prefix), random)| {
        Ipv4Addr::from(network | random & u32::MAX.checked_shr(prefix.into()).unwrap_or(0))
    })
}

#[test]
fn the_ends_of_every_range() {
    for range in RANGES {
        let (first, last) = ends(range.network, range.prefix);
        for end in [first, last] {
            let forbidden = classify(end).expect_err(&format!("{end} of {range}"));
            assert!(!forbidden.why.is_empty() && !forbidden.rfc.is_empty() && !forbidden.range.is_empty());
        }
    }
}

/// Written out by hand, so that a range that grew or shrank shows.
#[test]
fn the_neighbours_of_ranges() {
    let free = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.1.255",
        "192.0.3.0",
        "192.31.195.255",
        "192.31.197.0",
        "192.52.192.255",
        "192.52.194.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "192.175.47.255",
        "192.175.49.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "8.8.8.8",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "2000::1",
        "2001:4860:4860::8888",
        "2620:4f:7fff::",
        "2620:4f:8001::",
        "3ffe:ffff::",
        "2606:4700::1111",
        "3fff:1000::",
        "64:ff9b::8.8.8.8",
        "64:ff9b::1.1.1.1",
        "2a00:1:2:3:0:5eff:7f00:1",
    ];
    for free in free {
        let address: IpAddr = free.parse().unwrap();
        assert_eq!(classify(address), Ok(()), "{free}");
    }
    let bound = [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "100.100.100.200",
        "127.0.0.0",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.192",
        "192.0.0.255",
        "192.0.2.0",
        "192.0.2.255",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.255",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.254",
        "255.255.255.255",
        "::",
        "::1",
        "::2",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "fc00::",
        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "fd00:ec2::254",
        "ff02::1",
        "2001::1",
        "2001:1ff:ffff::",
        "2001:db8::",
        "2001:db8:ffff::1",
        "2002::1",
        "3fff::1",
        "3fff:fff::1",
        "100::1",
        "100:0:0:1::1",
        "5f00::1",
        "4000::1",
        "e000::1",
        "1fff::1",
        "64:ff9b:1::1",
        "64:ff9b:2::1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::168.63.129.16",
        "::ffff:8.8.8.8",
    ];
    for bound in bound {
        let address: IpAddr = bound.parse().unwrap();
        assert!(classify(address).is_err(), "{bound}");
    }
}

#[test]
fn a_single_address_is_told_by_its_name() {
    for metadata in
        ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"]
    {
        assert!(classify(metadata.parse().unwrap()).unwrap_err().why.contains("metadata"), "{metadata}");
    }
    let inside = classify("64:ff9b::169.254.169.254".parse().unwrap()).unwrap_err();
    assert_eq!(inside.range, "169.254.169.254/32 in 64:ff9b::/96");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_forbidden_is_so_in_every_disguise(v4 in forbidden_v4()) {
        prop_assert!(classify(IpAddr::V4(v4)).is_err(), "{}", v4);
        for (form, v6) in embeddings(v4) {
            prop_assert!(classify(IpAddr::V6(v6)).is_err(), "{} as {}: {}", v4, form, v6);
        }
    }

    #[test]
    fn nat64_is_as_free_as_what_it_carries(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from(bits);
        let v6 = embeddings(v4).into_iter().find(|(form, _)| *form == "NAT64").unwrap().1;
        prop_assert_eq!(classify(IpAddr::V4(v4)).is_ok(), classify(IpAddr::V6(v6)).is_ok());
    }

    #[test]
    fn all_that_passes_is_global(bits in any::<u128>()) {
        let v6 = Ipv6Addr::from(bits);
        if classify(IpAddr::V6(v6)).is_ok() {
            prop_assert!(v6.segments()[0] >> 13 == 1 || v6.segments()[0] == 0x64, "{}", v6);
        }
    }

    /// Against the standard library's opinion, which is another person's reading of the same RFCs.
    #[test]
    fn the_standard_library_agrees(v4 in any::<u32>().prop_map(Ipv4Addr::from)) {
        let bad = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast() || v4.is_documentation()
            || v4.is_unspecified() || v4.is_multicast();
        if bad {
            prop_assert!(classify(IpAddr::V4(v4)).is_err(), "{}", v4);
        }
    }
}
