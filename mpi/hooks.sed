# Lines "NAME own_NAME" as calls of the macros of hook_slots.S.
s/ .*//
/_File_.*_at.*_c$/ { s/(.*)_c/LARGE_AT(&, \1)/; b }
/_File_.*_c$/ { s/(.*)_c/LARGE(&, \1)/; b }
s/.*/HOOK(&)/
