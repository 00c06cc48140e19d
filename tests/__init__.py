"""Everything that is tested, one folder per subject: `core`, `plugins/<pack>`, `workspace`, `architecture`, ..."""
