//! A request that can be seen, on the ordinary way.

use super::{Body, Proxy, empty, refusal, text};
use crate::denied::{Code, Denied};
use crate::download::Download;
use crate::exchange::{Ask, Head, Redirect};
use crate::headers;
use crate::target::{Origin, Target};
use crate::upload::{Piece, Pieces, Source};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::sync::mpsc;

/// Bodies up to this length are read as a whole where secrets are put in, because some signatures need them so.
const GATHERED: u64 = 1 << 20;

impl Proxy {
    /// A request inside of TLS that the proxy speaks itself.
    pub(super) async fn inner(&self, request: Request<Incoming>, origin: &Origin) -> Response<Body> {
        let path = match request.uri().path_and_query() {
            Some(path) if request.uri().scheme().is_none() && path.as_str().starts_with('/') => path.as_str(),
            _ => return text(StatusCode::BAD_REQUEST, "inside of TLS a request has a path and no URL"),
        };
        let said: Vec<&[u8]> = request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes).collect();
        let ours = [origin.authority(), format!("{}:{}", origin.host, origin.port)];
        if !matches!(said[..], [said] if ours.iter().any(|ours| said.eq_ignore_ascii_case(ours.as_bytes()))) {
            let told = format!("this connection is for {origin}, and `host` says something else");
            return text(StatusCode::MISDIRECTED_REQUEST, &told);
        }
        let url = format!("{origin}{path}");
        self.forward(request, url).await
    }

    pub(super) async fn forward(&self, request: Request<Incoming>, url: String) -> Response<Body> {
        let target = Target::parse(&url);
        match self.exchange(request, url).await {
            Ok((head, download)) => response(head, download),
            Err(denied) => match target {
                Ok(target) => refusal(&self.notice(&target.origin, denied)),
                Err(_) => refusal(&denied),
            },
        }
    }

    async fn exchange(&self, request: Request<Incoming>, url: String) -> Result<(Head, Option<Box<Download>>), Denied> {
        let (parts, body) = request.into_parts();
        let most = self.visit.door.limits.request_bytes;
        let length = body.size_hint().exact();
        if length.is_some_and(|length| length > most) {
            return Err(too_long(most));
        }
        let (sender, pieces) = mpsc::channel(1);
        let mut source = if body.is_end_stream() { Source::Nothing } else { Source::Stream(Pieces { pieces, length }) };
        // It goes on after the answer has begun, until it is whole or nobody takes more of it.
        let mut sending = tokio::spawn(send(body, sender, most));
        let asking = async {
            if length.is_some_and(|length| length <= GATHERED) && self.is_bound(&url) {
                source.gather(most).await?;
            }
            let (method, headers) = (parts.method.to_string(), headers::end_to_end(&parts.headers));
            let ask = Ask { method, url, headers, redirect: Redirect::Manual, source };
            self.visit.exchange().run(ask).await
        };
        let mut asking = std::pin::pin!(asking);
        tokio::select! {
            biased;
            sent = &mut sending => match sent {
                Ok(Err(denied)) => Err(denied),
                _ => asking.await,
            },
            answer = &mut asking => match answer {
                // Given up because the body failed, which tells more.
                Err(given_up) if given_up.code == Code::Cancelled => match sending.await {
                    Ok(Err(denied)) => Err(denied),
                    _ => Err(given_up),
                },
                answer => answer,
            },
        }
    }

    fn is_bound(&self, url: &str) -> bool {
        Target::parse(url).is_ok_and(|target| self.visit.pass.credentials.covers(&target.origin))
    }
}

async fn send(mut body: Incoming, sender: mpsc::Sender<Piece>, most: u64) -> Result<(), Denied> {
    let mut sent = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Denied::invalid("the request's body broke off, or is none"))?;
        // Trailers are not passed on.
        let Ok(chunk) = frame.into_data() else { continue };
        sent += chunk.len() as u64;
        if sent > most {
            return Err(too_long(most));
        }
        if sender.send(Piece::Chunk(chunk)).await.is_err() {
            return Ok(());
        }
    }
    // Nobody may be there who waits for it.
    let _ = sender.send(Piece::End).await;
    Ok(())
}

fn too_long(most: u64) -> Denied {
    Denied::limit(format!("the request's body has more than {most} bytes (`request_bytes`)"))
}

fn response(head: Head, download: Option<Box<Download>>) -> Response<Body> {
    let body = match download {
        Some(download) => StreamBody::new(futures_util::stream::unfold(download, piece)).boxed_unsync(),
        None => empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = fields(&head.headers);
    if matches!(head.status, 204 | 205) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

type Given = (Result<Frame<Bytes>, Denied>, Box<Download>);

async fn piece(mut download: Box<Download>) -> Option<Given> {
    match download.read().await {
        Ok(Some(bytes)) => Some((Ok(Frame::data(bytes)), download)),
        Ok(None) => None,
        Err(denied) => Some((Err(denied), download)),
    }
}

fn fields(list: &[(String, String)]) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let bytes: Vec<u8> = value.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(&bytes)) else {
            continue;
        };
        if name == CONTENT_LENGTH {
            out.insert(name, value);
        } else {
            out.append(name, value);
        }
    }
    out
}
