"""The site: pages of results, diagnoses and audits that work from a file."""
