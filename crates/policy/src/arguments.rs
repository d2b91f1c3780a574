//! Arguments are measured before anything parses them.

use crate::Limits;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("the arguments have {bytes} bytes, {most} are allowed (`argument_kb`)")]
    TooLarge { bytes: usize, most: u64 },
    #[error("the arguments are nested deeper than {most} levels (`argument_depth`)")]
    TooDeep { most: u64 },
}

/// Refuses arguments that are larger or deeper than the limits allow. Whether they are JSON at all is not asked here.
pub fn check_arguments(json: &[u8], limits: &Limits) -> Result<(), ArgumentError> {
    let most = limits.argument_kb * 1024;
    if json.len() as u64 > most {
        return Err(ArgumentError::TooLarge { bytes: json.len(), most });
    }
    let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > limits.argument_depth {
                    return Err(ArgumentError::TooDeep { most: limits.argument_depth });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_structure_and_not_text() {
        let limits = Limits { argument_depth: 2, ..Limits::default() };
        assert!(check_arguments(br#"{"a":["x"]}"#, &limits).is_ok());
        assert!(check_arguments(br#"{"a":["[[[[\"{{{"]}"#, &limits).is_ok());
        assert_eq!(check_arguments(br#"{"a":[[1]]}"#, &limits), Err(ArgumentError::TooDeep { most: 2 }));
    }

    #[test]
    fn size_is_checked_first() {
        let limits = Limits { argument_kb: 1, ..Limits::default() };
        assert!(matches!(check_arguments(&[b'['; 1025], &limits), Err(ArgumentError::TooLarge { bytes: 1025, .. })));
    }
}
