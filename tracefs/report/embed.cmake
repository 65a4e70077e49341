# cmake -DOUT=FILE.cc -DFOLDER=web -DSCRIPTS="a.js,b.js" -DCOMPARISON=… -P embed.cmake
# Makes C++ of the files of the page: raw literals, one a file.
set(source "#include \"tracefs/report/web_files.h\"\n\nnamespace tracefs::report {\n\n")

function(literal name)
  set(text "")
  foreach(file IN LISTS ARGN)
    file(READ ${FOLDER}/${file} content)
    string(FIND "${content}" ")~page~" ends)
    if(NOT ends EQUAL -1)
      message(FATAL_ERROR "${file} has what ends a literal")
    endif()
    string(APPEND text "R\"~page~(${content})~page~\"\n")
  endforeach()
  set(source "${source}const std::string_view ${name} =\n${text};\n" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" scripts "${SCRIPTS}")
string(REPLACE "," ";" comparison "${COMPARISON}")
literal(kPageStyle page.css)
literal(kPictureStyle picture.css)
literal(kPageScript ${scripts})
literal(kComparisonScript ${comparison})
file(WRITE ${OUT} "${source}\n}  // namespace tracefs::report\n")
