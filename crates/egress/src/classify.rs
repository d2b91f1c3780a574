//! Which addresses nobody reaches, whatever the rules say. There is no switch.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One refused range. IPv4 ranges also count inside of every IPv6 form that carries an IPv4 address.
pub struct Range {
    pub network: IpAddr,
    pub prefix: u8,
    /// Where the range is set aside.
    pub rfc: &'static str,
    pub why: &'static str,
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden {
    pub range: String,
    pub rfc: &'static str,
    pub why: &'static str,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({}, {})", self.why, self.range, self.rfc)
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, rfc: &'static str, why: &'static str) -> Range {
    Range { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix, rfc, why }
}

const fn v6(network: [u16; 8], prefix: u8, rfc: &'static str, why: &'static str) -> Range {
    let [a, b, c, d, e, f, g, h] = network;
    Range { network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix, rfc, why }
}

/// All of them; the first that fits names the reason, so single addresses stand before the ranges around them.
pub const RANGES: &[Range] = &[
    v4(
        169,
        254,
        169,
        254,
        32,
        "RFC 3927",
        "cloud metadata (AWS, Azure, Google, Oracle, OpenStack, DigitalOcean, Hetzner)",
    ),
    v4(169, 254, 170, 2, 32, "RFC 3927", "cloud metadata (credentials of AWS ECS tasks)"),
    v4(169, 254, 170, 23, 32, "RFC 3927", "cloud metadata (credentials of AWS EKS pods)"),
    v4(169, 254, 0, 23, 32, "RFC 3927", "cloud metadata (Tencent)"),
    v4(169, 254, 42, 42, 32, "RFC 3927", "cloud metadata (Scaleway)"),
    v4(100, 100, 100, 200, 32, "RFC 6598", "cloud metadata (Alibaba)"),
    v4(168, 63, 129, 16, 32, "Azure platform", "cloud metadata (Azure wire server)"),
    v4(192, 0, 0, 192, 32, "RFC 6890", "cloud metadata (Oracle)"),
    v4(255, 255, 255, 255, 32, "RFC 919", "broadcast"),
    v4(0, 0, 0, 0, 8, "RFC 1122", "unspecified: this host on this network"),
    v4(10, 0, 0, 0, 8, "RFC 1918", "private network"),
    v4(100, 64, 0, 0, 10, "RFC 6598", "shared address space of carriers (CGNAT)"),
    v4(127, 0, 0, 0, 8, "RFC 1122", "loopback"),
    v4(169, 254, 0, 0, 16, "RFC 3927", "link-local"),
    v4(172, 16, 0, 0, 12, "RFC 1918", "private network"),
    v4(192, 0, 0, 0, 24, "RFC 6890", "protocol assignments"),
    v4(192, 0, 2, 0, 24, "RFC 5737", "documentation"),
    v4(192, 31, 196, 0, 24, "RFC 7535", "AS112 redirection"),
    v4(192, 52, 193, 0, 24, "RFC 7450", "multicast tunnels (AMT)"),
    v4(192, 88, 99, 0, 24, "RFC 7526", "6to4 relays, withdrawn"),
    v4(192, 168, 0, 0, 16, "RFC 1918", "private network"),
    v4(192, 175, 48, 0, 24, "RFC 7534", "AS112 direct delegation"),
    v4(198, 18, 0, 0, 15, "RFC 2544", "benchmarks"),
    v4(198, 51, 100, 0, 24, "RFC 5737", "documentation"),
    v4(203, 0, 113, 0, 24, "RFC 5737", "documentation"),
    v4(224, 0, 0, 0, 4, "RFC 5771", "multicast"),
    v4(240, 0, 0, 0, 4, "RFC 1112", "reserved"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, "RFC 4193", "cloud metadata (AWS)"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, "RFC 4193", "cloud metadata (credentials of AWS EKS pods)"),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, "RFC 4193", "cloud metadata (Google)"),
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, "RFC 4193", "cloud metadata (Scaleway)"),
    v6([0; 8], 128, "RFC 4291", "unspecified"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "RFC 4291", "loopback"),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "RFC 4291", "an IPv4 address in disguise (mapped)"),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "RFC 2765", "an IPv4 address in disguise (translated)"),
    v6([0; 8], 96, "RFC 4291", "an IPv4 address in disguise (compatible)"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "RFC 8215", "an IPv4 address in disguise (NAT64 of a local network)"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "RFC 6666", "discarded traffic"),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "RFC 9780", "dummy prefix"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "RFC 4380", "an IPv4 address in disguise (Teredo)"),
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "RFC 5180", "benchmarks"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "RFC 3849", "documentation"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "RFC 2928", "protocol assignments"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "RFC 3056", "an IPv4 address in disguise (6to4)"),
    v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "RFC 7534", "AS112 direct delegation"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "RFC 9637", "documentation"),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "RFC 9602", "segment routing"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "RFC 4193", "unique-local"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "RFC 4291", "link-local"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "RFC 3879", "site-local, withdrawn"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "RFC 4291", "multicast"),
];

/// The one IPv6 form with an IPv4 address inside that may pass, if the address inside does: networks without IPv4 need it.
const NAT64: Range = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "RFC 6052", "an IPv4 address in disguise (NAT64)");

/// What is not yet given to anybody: only 2000::/3 is.
const UNASSIGNED: Range = v6([0; 8], 0, "RFC 4291", "reserved: outside of global unicast (2000::/3)");
const GLOBAL: Range = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "RFC 4291", "global unicast");

/// Tunnel interfaces are known by the second half of their address, under any prefix.
const ISATAP: Forbidden =
    Forbidden { range: String::new(), rfc: "RFC 5214", why: "an IPv4 address in disguise (ISATAP)" };

impl Range {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let host_bits = 32 - u32::from(self.prefix.min(32));
                let differ = u32::from(network) ^ u32::from(address);
                differ.checked_shr(host_bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let host_bits = 128 - u32::from(self.prefix.min(128));
                let differ = u128::from(network) ^ u128::from(address);
                differ.checked_shr(host_bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    pub(crate) fn forbidden(&self) -> Forbidden {
        Forbidden { range: self.to_string(), rfc: self.rfc, why: self.why }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// Whether an address may be connected to as far as the address alone tells.
pub fn classify(address: IpAddr) -> Result<(), Forbidden> {
    if let Some(range) = RANGES.iter().find(|range| range.contains(address)) {
        return Err(range.forbidden());
    }
    let IpAddr::V6(v6) = address else {
        return Ok(());
    };
    let [.., a, b, c, d] = v6.octets();
    if NAT64.contains(address) {
        let inner = classify(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
        return inner.map_err(|inner| Forbidden { range: format!("{} in {NAT64}", inner.range), ..inner });
    }
    if !GLOBAL.contains(address) {
        return Err(UNASSIGNED.forbidden());
    }
    match v6.segments() {
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => {
            Err(Forbidden { range: "*::[200:]5efe:0.0.0.0/96".to_owned(), ..ISATAP })
        }
        _ => Ok(()),
    }
}

/// The table of docs/egress.md.
pub fn table() -> String {
    let mut out = String::from("| range | why | set aside by |\n|---|---|---|\n");
    for range in RANGES {
        out += &format!("| `{range}` | {} | {} |\n", range.why, range.rfc);
    }
    out += &format!("| `{NAT64}` with any of the IPv4 ranges inside | {} | {} |\n", NAT64.why, NAT64.rfc);
    out += &format!(
        "| any prefix with `0:5efe` or `200:5efe` before the last 32 bits | {} | {} |\n",
        ISATAP.why, ISATAP.rfc
    );
    out += &format!("| all else outside of `{GLOBAL}` | {} | {} |\n", UNASSIGNED.why, UNASSIGNED.rfc);
    out += "| every address of the host's own interfaces | the host itself | – |\n";
    out
}
