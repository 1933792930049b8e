"""What the compiler makes of a corpus of modules, as hashes: shows what a change changes."""
