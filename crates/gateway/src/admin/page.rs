//! Lists in pieces.

use super::error::Error;
use serde::Deserialize;
use utoipa::IntoParams;

/// Entries of one page unless the caller says otherwise, and at most.
const USUAL: usize = 100;
const MOST: usize = 1000;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Entries at most: 1 to 1000, and 100 unless given.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

pub fn limit(asked: Option<usize>) -> Result<usize, Error> {
    match asked {
        None => Ok(USUAL),
        Some(asked) if (1..=MOST).contains(&asked) => Ok(asked),
        Some(asked) => Err(Error::bad_query(format!("`limit` of {asked} is not within 1 and {MOST}"))),
    }
}

/// Cuts one page out of a whole list that is sorted by `id`. The cursor is the last one seen, which may be gone by now.
pub fn cut_sorted<T>(entries: Vec<T>, query: &PageQuery, id: impl Fn(&T) -> &str) -> Result<Page<T>, Error> {
    let start = match &query.cursor {
        None => 0,
        Some(cursor) => entries.partition_point(|entry| id(entry) <= cursor.as_str()),
    };
    Page::from(entries, start, limit(query.limit)?, id)
}

/// Cuts one page out of a whole list in any order. If the cursor's entry is gone meanwhile, the reader starts again.
pub fn cut<T>(entries: Vec<T>, query: &PageQuery, id: impl Fn(&T) -> &str) -> Result<Page<T>, Error> {
    let start = match &query.cursor {
        None => 0,
        Some(cursor) => match entries.iter().position(|entry| id(entry) == cursor) {
            Some(seen) => seen + 1,
            None => return Err(no_such_cursor()),
        },
    };
    Page::from(entries, start, limit(query.limit)?, id)
}

pub fn no_such_cursor() -> Error {
    Error::bad_query("`cursor` names no entry of this list; start again without it")
}

#[derive(Debug, PartialEq)]
pub struct Page<T> {
    pub entries: Vec<T>,
    /// Where the next one starts, unless this is the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    fn from(entries: Vec<T>, start: usize, limit: usize, id: impl Fn(&T) -> &str) -> Result<Page<T>, Error> {
        let more = entries.len() > start.saturating_add(limit);
        let entries: Vec<T> = entries.into_iter().skip(start).take(limit).collect();
        let next = if more { entries.last().map(|entry| id(entry).to_owned()) } else { None };
        Ok(Page { entries, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(limit: usize, cursor: Option<&str>) -> PageQuery {
        PageQuery { limit: Some(limit), cursor: cursor.map(str::to_owned) }
    }

    fn ask(limit: usize, cursor: Option<&str>) -> Result<Page<&'static str>, Error> {
        cut(vec!["a", "b", "c", "d", "e"], &query(limit, cursor), |entry| entry)
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repetition() {
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = ask(2, cursor.as_deref()).unwrap();
            seen.extend(page.entries);
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_page_that_holds_the_rest_is_the_last() {
        assert_eq!(ask(5, None).unwrap().next, None);
        assert_eq!(ask(2, Some("c")).unwrap(), Page { entries: vec!["d", "e"], next: None });
        assert_eq!(ask(2, Some("e")).unwrap(), Page { entries: vec![], next: None });
    }

    #[test]
    fn limits_and_cursors_that_make_no_sense_are_refused() {
        assert!(ask(0, None).is_err());
        assert!(ask(1001, None).is_err());
        assert!(ask(2, Some("nobody")).is_err());
    }

    #[test]
    fn a_sorted_list_goes_on_after_an_entry_that_is_gone() {
        let page = cut_sorted(vec!["a", "c", "d"], &query(1, Some("b")), |entry| entry).unwrap();
        assert_eq!(page, Page { entries: vec!["c"], next: Some("c".to_owned()) });
    }
}
