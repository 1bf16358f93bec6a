//! Alibaba Cloud's signature V3, `ACS3-HMAC-SHA256`: what is signed is the method, the query and six headers.

use std::fmt::Write as _;

use linchpin_words::hash::sha256_hex;
use ring::hmac;

use crate::client::segment;

/// Who signs.
#[derive(Clone, Copy)]
pub(super) struct Signer<'s> {
    pub(super) key: &'s str,
    pub(super) secret: &'s str,
}

/// A call of the cloud's API with an empty body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'s> {
    pub(super) host: &'s str,
    pub(super) action: &'s str,
    pub(super) version: &'s str,
    pub(super) date: &'s str,
    pub(super) nonce: &'s str,
    /// The query as it is sent: [`query`].
    pub(super) query: &'s str,
}

/// Parameters as they are signed and sent: sorted and encoded.
pub(super) fn query(parameters: &mut [(&str, &str)]) -> String {
    parameters.sort_unstable();
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", segment(name), segment(value))).collect();
    pairs.join("&")
}

impl Signed<'_> {
    /// The headers that are signed, in order; the first is the host's.
    pub(super) fn headers(&self) -> [(&'static str, String); 6] {
        [
            ("host", self.host.to_owned()),
            ("x-acs-action", self.action.to_owned()),
            ("x-acs-content-sha256", sha256_hex(b"")),
            ("x-acs-date", self.date.to_owned()),
            ("x-acs-signature-nonce", self.nonce.to_owned()),
            ("x-acs-version", self.version.to_owned()),
        ]
    }

    fn canonical(&self) -> String {
        let headers = self.headers();
        let mut text = format!("POST\n/\n{}\n", self.query);
        for (name, value) in &headers {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}:{value}");
        }
        let _ = write!(text, "\n{}\n{}", names(&headers), sha256_hex(b""));
        text
    }

    /// The Authorization header.
    pub(super) fn authorization(&self, signer: Signer<'_>) -> String {
        let text = format!("ACS3-HMAC-SHA256\n{}", sha256_hex(self.canonical().as_bytes()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, signer.secret.as_bytes());
        let mut signature = String::with_capacity(64);
        for byte in hmac::sign(&key, text.as_bytes()).as_ref() {
            let _ = write!(signature, "{byte:02x}");
        }
        let names = names(&self.headers());
        format!("ACS3-HMAC-SHA256 Credential={},SignedHeaders={names},Signature={signature}", signer.key)
    }
}

fn names(headers: &[(&'static str, String)]) -> String {
    headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of "Request syntax and signature method V3" in Alibaba Cloud's documentation, with its results.
    #[test]
    fn the_published_example_gives_the_published_signature() {
        let query = query(&mut [
            ("RegionId", "cn-shanghai"),
            ("ImageId", "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"),
        ]);
        assert_eq!(query, "ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai");
        let signed = Signed {
            host: "ecs.cn-shanghai.aliyuncs.com",
            action: "RunInstances",
            version: "2014-05-26",
            date: "2023-10-26T10:22:32Z",
            nonce: "3156853299f313e23d1673dc12e1703d",
            query: &query,
        };
        assert_eq!(
            sha256_hex(signed.canonical().as_bytes()),
            "7ea06492da5221eba5297e897ce16e55f964061054b7695beedaac1145b1e259"
        );
        let who = Signer { key: "YourAccessKeyId", secret: "YourAccessKeySecret" };
        assert_eq!(
            signed.authorization(who),
            "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;\
             x-acs-date;x-acs-signature-nonce;x-acs-version,\
             Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
        );
    }

    #[test]
    fn what_a_value_has_in_it_does_not_leave_it() {
        assert_eq!(query(&mut [("a", "b&c=d e*~")]), "a=b%26c%3Dd%20e%2A~");
    }
}
