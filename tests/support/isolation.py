"""What keeps tests apart from the configuration of the machine and of whoever runs them."""

#: No file can be there, for any user.
NOWHERE = "/dev/null/none"
WITHOUT_CONFIGURATION = {"FOREBAY_SITE_CONFIG": NOWHERE, "XDG_CONFIG_HOME": NOWHERE}
