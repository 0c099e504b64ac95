"""Publishing: from results, adapters and scenarios to the folder of a site.

Pure functions make page models; `pages` and `build` alone write and start something. Nothing here judges a
trial, and nothing knows a particular framework or scenario.
"""
