# Commands that speak HTTP, and what refuses them in a build without the server.
get_target_property(sources juno_cli SOURCES)
if(JUNO_SERVER)
  list(FILTER sources EXCLUDE REGEX "/without_server\\.cc$")
else()
  list(FILTER sources EXCLUDE REGEX "/(serve|config|chat|ps|local_api|http_client|server_partner)\\.cc$")
endif()
set_target_properties(juno_cli PROPERTIES SOURCES "${sources}")
