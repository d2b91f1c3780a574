// The URL against which relative ones are resolved. Servers have none, so a relative URL is an error there.
let base;

export const baseUrl = () => base;
export const setBaseUrl = (url) => {
  base = url;
};
